"""A plugin of pytest: in place of its loop over tests, one over mutants. Each gets a fork of the process that collected
the tests, so nothing is imported or collected twice."""

from __future__ import annotations

import importlib
import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from laketier_verification.mutants import patching
from laketier_verification.mutants.forked import Reports, Say, Test, in_a_fork, run_until_one_fails
from laketier_verification.mutants.profile import NotRecorded, Profile, profile
from laketier_verification.mutants.results import KILLED, NEAR, NOT_VIABLE, SURVIVED, TIMED_OUT, Result, Results
from laketier_verification.mutants.source import Key, Module, Mutant

TOGETHER = 128
"""Mutants that the first tests did not notice share a run of all the others."""
_FIRST = 1.5
"""Seconds of the tests that a mutant is given alone: those that most often notice, for their time."""
_PATIENCE, _TIMES = 30.0, 15.0


class Loop:
    """``mutants`` in the order in which they are tried, until ``seconds`` have passed. ``near``: by first tests only.
    ``asked``: a pattern of the tests, and all others are left out. ``met_all``: survivors of all tests of before, which
    stay so. ``together``: no mutant meets tests alone at first."""

    def __init__(
        self,
        modules: Mapping[str, Module],
        mutants: Sequence[Mutant],
        results: Results,
        *,
        seconds: float,
        near: bool,
        file: Path,
        tell: Callable[[str], None],
        asked: str = "",
        met_all: Container[Key] = (),
        together: bool = False,
    ) -> None:
        self._modules, self._mutants, self._results = modules, list(mutants), results
        self._seconds, self._near, self._file, self._tell = seconds, near, file, tell
        self._asked, self._met_all, self._together = asked, met_all, together
        self._until = 0.0
        self._reports = Reports()
        self.broken: Exception | None = None
        self._items: dict[str, pytest.Item] = {}
        self._profile: Profile = {}
        self._live: patching.Live = {}
        self._kills: Counter[tuple[str, str]] = Counter()
        self._pass: set[tuple[str, ...]] = set()
        self._unfit: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of pytest's, which would show an error of ours as one of a test."""
        try:
            self._go(session)
        except Exception as error:  # noqa: BLE001 - raised by who runs pytest
            self.broken = error
        return True

    def _go(self, session: pytest.Session) -> None:
        if session.testsfailed or not session.items:
            raise pytest.UsageError("the tests can't be collected, so no mutant is tried")
        session.config.pluginmanager.register(self._reports, "mutants-reports")
        asked = [item for item in session.items if re.search(self._asked, item.nodeid)]
        if not asked:
            raise pytest.UsageError(f"no test has a name that {self._asked!r} matches")
        self._items = {item.nodeid: item for item in asked}
        for module in self._modules:
            importlib.import_module(module)
        self._live = patching.live_functions(module.file for module in self._modules.values())
        patching.seen_by_children()
        self._tell(f"{len(self._items)} tests; without a mutant first")
        self._until = time.monotonic() + self._seconds
        try:
            self._profile = profile(self._file, asked, self._modules, self._reports, self._control, self._until)
        except NotRecorded as unfinished:
            self._tell(f"{unfinished}; run once more")
            return
        broken = [name for name, seen in self._profile.items() if not seen.passed]
        self._tell(f"left out, as they do not pass without a mutant: {', '.join(broken) or 'none'}")
        self._try_all()

    def _control(self, folder: Path) -> None:
        """Put each module's own code in, as if it had mutants."""
        patching.put_in_unchanged(self._modules.values(), self._live, folder)

    def _try_all(self) -> None:
        known = {result.key: result for result in self._results.of(self._modules)}
        for result in known.values():
            if result.noticed:
                self._count(result)
        left = [mutant for mutant in self._mutants if not known.get(mutant.key, _NOTHING).noticed]
        waiting = [mutant for mutant in left if known.get(mutant.key, _NOTHING).outcome == NEAR or self._together]
        new = [mutant for mutant in left if mutant.key not in known and mutant not in waiting]
        for number, mutant in enumerate(new, start=1):
            if time.monotonic() > self._until:
                return
            result = self._try_alone(mutant, self._first_tests(mutant))
            if result.outcome == SURVIVED and mutant.key not in self._met_all:
                result = self._result(mutant, NEAR, tests=result.tests, seconds=result.seconds)
                waiting.append(mutant)
            self._add(mutant, result, f"{number}/{len(new)}")
            if not self._near and len({_function(each) for each in waiting}) >= TOGETHER:
                self._try_far(waiting)
        while waiting and not self._near and time.monotonic() < self._until:
            self._try_far(waiting)

    def _try_far(self, waiting: list[Mutant]) -> None:
        """Take some of those that wait, one of a function, and try them together."""
        group: dict[tuple[str, str], Mutant] = {}
        for mutant in waiting:
            if len(group) < TOGETHER:
                group.setdefault(_function(mutant), mutant)
        for mutant in group.values():
            waiting.remove(mutant)
        self._try_group(list(group.values()))

    def _try_group(self, group: list[Mutant]) -> None:
        """All of them at once. One that left may have hidden another in a test that passed: a rollup that nobody can
        read hides all mistakes in rollups. So those that are left meet such tests again, until none of them leaves."""
        tests = self._all_tests(group)
        while group and tests and time.monotonic() < self._until:
            beside = self._pass_over(group, tests)
            reaching = self._reaching(group)
            tests = [test for test in tests[:beside] if test.item.nodeid in reaching]
        for mutant in group:
            waits = (self._asked and mutant.key not in self._met_all) or tests
            self._add(
                mutant, self._result(mutant, NEAR if waits else SURVIVED, tests=len(self._all_tests([mutant]))), "then"
            )

    def _pass_over(self, group: list[Mutant], tests: Sequence[Test]) -> int:
        """Where a test fails, those that it notices leave, and the others go on from there. How many of the tests, from
        the first one, were asked beside somebody who left."""
        at = beside = 0
        while group and at < len(tests):
            together = self._try(group, tests[at:])
            if together.outcome == SURVIVED:
                break
            at += max(1, together.tests)
            test = tests[at - 1]
            for mutant, alone in self._noticed_by(test, self._mutants_of(test, group)):
                group.remove(mutant)
                self._add(mutant, alone, "then")
                beside = at
        return beside

    def _noticed_by(self, test: Test, group: list[Mutant]) -> Iterator[tuple[Mutant, Result]]:
        """Which of them it notices: halves are put to it, down to each."""
        result = self._try(group, [test]) if group else None
        if result is None or result.outcome == SURVIVED:
            return
        if len(group) == 1:
            if self._passes_without([test]):
                self._count(result)
                yield group[0], result
            return
        half = len(group) // 2
        yield from self._noticed_by(test, group[:half])
        yield from self._noticed_by(test, group[half:])

    def _try_alone(self, mutant: Mutant, tests: Sequence[Test]) -> Result:
        """A test that fails has noticed it only where the same tests pass without it, and don't with it once more: one
        that needs another before it, or fails now and then, says nothing of a mutant."""
        while True:
            result = self._try([mutant], tests)
            if not result.noticed:
                return result
            asked, tests = tests[: result.tests], tests[result.tests :]
            # To wait for an end once more would take longer than all the others.
            if self._passes_without(asked) and (
                result.outcome == TIMED_OUT or self._try([mutant], asked).outcome != SURVIVED
            ):
                self._count(result)
                return result

    def _passes_without(self, tests: Sequence[Test]) -> bool:
        """These, in this order and in a fork of their own. Where not, the one that failed is asked no more."""
        names = tuple(test.item.nodeid for test in tests)
        if names not in self._pass:
            outcome, by, _ = self._ask([], tests)
            if outcome != SURVIVED:
                self._unfit.add(by)
                self._tell(f"left out, as it does not pass without a mutant after {names[:-1]}: {by}")
                return False
            self._pass.add(names)
        return True

    def _try(self, group: Sequence[Mutant], tests: Sequence[Test]) -> Result:
        began = time.monotonic()
        outcome, by, asked = self._ask(group, tests)
        return self._result(group[0], outcome, by=by, tests=asked, seconds=round(time.monotonic() - began, 2))

    def _ask(self, group: Sequence[Mutant], tests: Sequence[Test]) -> tuple[str, str, int]:
        """What became of them, by which test, and how many began."""

        def work(say: Say, folder: Path) -> None:
            try:
                patching.put_in(group, self._modules, self._live, folder / "code")
            except patching.NotViable as error:
                say({"not viable": str(error)})
            else:
                run_until_one_fails(tests, folder, self._reports, say)

        outcome, by, asked, broken = KILLED, "", 0, ""
        for word in in_a_fork(work, lambda word: float(word.get("limit", _PATIENCE))):
            if "begin" in word:
                by, asked = word["begin"], asked + 1
            elif "passed" in word:
                outcome, by = SURVIVED, ""
            elif "not viable" in word:
                outcome, by = NOT_VIABLE, word["not viable"]
            elif "timeout" in word:
                outcome = TIMED_OUT
            elif "broken" in word:
                broken = word["broken"]
        if not asked and outcome in (KILLED, TIMED_OUT):
            raise RuntimeError(f"no test began: {broken or 'the fork ended, or took too long to begin'}")
        # A process that ended without a word was ended by the mutant, in the test that had begun.
        return outcome, by, asked

    def _count(self, result: Result) -> None:
        self._kills[result.by, ""] += 1
        self._kills[result.by, result.key.module] += 1

    def _result(self, mutant: Mutant, outcome: str, **more: Any) -> Result:
        digest = self._modules[mutant.key.module].digest(mutant.key.function)
        return Result(mutant.key, digest, mutant.line, outcome, **more)

    def _add(self, mutant: Mutant, result: Result, number: str) -> None:
        self._results.add(result)
        key = mutant.key
        short = result.by.rpartition("/")[2] or key.before[:60]
        self._tell(
            f"{number} {result.outcome}: {key.module}:{mutant.line} {key.operator}: {short} ({result.seconds} s)"
        )

    # -- which tests ------------------------------------------------------------------------------------------------

    def _first_tests(self, mutant: Mutant) -> list[Test]:
        """Cheap ones that run its line, in one process; or those that the caller names."""
        if self._asked:
            return self._all_tests([mutant])
        chosen: list[Test] = []
        seconds = 0.0
        for test in self._ordered(self._reaching([mutant]), mutant.key.module):
            seen = self._profile[test.item.nodeid]
            # One dear test is better than none: it may be the only one that reaches the line.
            if not seen.starts and (not chosen or seconds + seen.seconds <= _FIRST):
                chosen.append(test)
                seconds += seen.seconds
        return chosen

    def _all_tests(self, group: Sequence[Mutant]) -> list[Test]:
        """Those that run a line of one of them, of the tests that were asked for."""
        return self._ordered(name for name in self._reaching(group) if re.search(self._asked, name))

    def _mutants_of(self, test: Test, group: Sequence[Mutant]) -> list[Mutant]:
        return [each for each in group if test.item.nodeid in self._reaching([each])]

    def _reaching(self, group: Sequence[Mutant]) -> set[str]:
        """Those that run the line, or begin the statement which holds it, and those of which nobody knows."""
        wanted = [(each.key.module, _lines_of(each)) for each in group]
        return {
            name
            for name, seen in self._profile.items()
            if seen.blind or any(lines & seen.lines.get(module, frozenset()) for module, lines in wanted)
        }

    def _ordered(self, names: Iterable[str], module: str = "") -> list[Test]:
        """First those that noticed most for their time, above all in the same module."""

        def worth(name: str) -> tuple[float, str]:
            kills = 1 + self._kills[name, ""] + 10 * self._kills[name, module]
            return -kills / (0.01 + self._profile[name].seconds), name

        fit = (name for name in names if self._profile[name].passed and name not in self._unfit)
        chosen = sorted(fit, key=worth)
        return [Test(self._items[name], _PATIENCE + _TIMES * self._profile[name].seconds) for name in chosen]


class _Nothing:
    outcome = ""
    noticed = False


_NOTHING: Any = _Nothing()


def _function(mutant: Mutant) -> tuple[str, str]:
    return mutant.key.module, mutant.key.function


def _lines_of(mutant: Mutant) -> frozenset[int]:
    starts = {mutant.line, *(statement.lineno for statement in mutant.edit.statements)}
    return frozenset(starts)
