"""What the suite notices: by rule, module and operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from laketier_verification.mutants.results import NEAR, NOT_VIABLE, SURVIVED, Result, Results
from laketier_verification.mutants.rules import rule_of
from laketier_verification.mutants.sample import Sample, interval
from laketier_verification.mutants.source import Key, Module
from laketier_verification.mutants.survivors import Argued, argued
from laketier_verification.mutants.targets import FOLDER, TARGETS


@dataclass(frozen=True)
class Score:
    """``equivalent``: survived, and argued. They count neither way. ``ours``: survived, and our own tests notice."""

    tried: int
    noticed: int
    equivalent: int
    ours: int

    @classmethod
    def of(cls, results: Iterable[Result], about: Callable[[Result], bool], ours: Container[Key]) -> Score:
        """Of what is viable among them."""
        found = list(results)
        left = [result for result in found if not result.noticed]
        counted = [result for result in left if not about(result)]
        by_ours = sum(result.key in ours for result in counted)
        return cls(len(found), len(found) - len(left), len(left) - len(counted), by_ours)

    @property
    def percent(self) -> float:
        """Of those that something could notice."""
        could = self.tried - self.equivalent
        return 100 * self.noticed / could if could else 100.0

    @property
    def interval(self) -> tuple[float, float]:
        """Between which percentages the score of all lies, where these are a sample."""
        return interval(self.noticed, self.tried - self.equivalent)

    @property
    def with_ours(self) -> float:
        """The same, when our own tests count as well."""
        could = self.tried - self.equivalent
        return 100 * (self.noticed + self.ours) / could if could else 100.0


@dataclass(frozen=True)
class Told:
    """All that is known of a target. ``total``: its mutants, of which some were drawn. ``ours``: what our own tests
    notice, for a target of the suite. ``elsewhere``: how many the suite noticed on another format alone. ``sample``:
    those that were drawn for a score, and nothing is told of others."""

    name: str
    total: int
    results: Sequence[Result]
    not_viable: int
    entries: Sequence[Argued]
    ours: Mapping[Key, Result]
    elsewhere: Mapping[str, int]
    sample: Sample | None = None

    @classmethod
    def of(
        cls,
        name: str,
        modules: Mapping[str, Module],
        results: Results,
        entries: Sequence[Argued],
        sample: Sample | None = None,
        *,
        at_least: bool = False,
    ) -> Told:
        """From the file of results, and those of other targets that share modules. A test of any format's suite that
        notices is enough, so what two formats share has the same score for both. Raises `NotFinished` of a sample."""
        within = sample.keys(modules) if sample else None
        mine = {result.key: result for result in results.of(modules) if within is None or result.key in within}
        suites, ours = (_elsewhere(name, modules, by_the_suite=suite, within=within) for suite in (True, False))
        known, only_there = dict(mine), Counter[str]()
        for key, (other, result) in suites.items() if _is_suite(name) else ():
            if result.noticed and not (key in mine and mine[key].noticed):
                known[key] = result
                only_there[other] += 1
            elif key not in mine:
                known[key] = replace(result, outcome=NEAR) if result.outcome == SURVIVED else result
        if sample is not None:
            outcomes = {key: result.outcome for key, result in known.items()}
            sample.refuse_unfinished(outcomes, within or (), at_least=at_least)
        viable = [result for result in known.values() if result.outcome != NOT_VIABLE]
        total = sum(len(module.mutants) for module in modules.values())
        by_ours = {key: result for key, (_, result) in ours.items() if result.noticed} if _is_suite(name) else {}
        return cls(name, total, viable, len(known) - len(viable), entries, by_ours, dict(only_there), sample)

    def is_argued(self, result: Result) -> bool:
        """A line says why nobody could notice."""
        return any(entry.is_about(result.key) for entry in self.entries)

    @property
    def score(self) -> Score:
        """Of all."""
        return Score.of(self.results, self.is_argued, self.ours)

    @property
    def unargued(self) -> list[Result]:
        """Survivors that count, and that our own tests do not notice either."""
        left = [result for result in self.results if not result.noticed and result.key not in self.ours]
        return [result for result in left if not self.is_argued(result)]

    @property
    def argued_and_noticed(self) -> list[Result]:
        """An argument that is wrong."""
        noticed = [result for result in self.results if result.noticed or result.key in self.ours]
        return [result for result in noticed if self.is_argued(result)]

    def by(self, of: Callable[[Result], str]) -> dict[str, Score]:
        """Scores of parts, in order of their names."""
        names = sorted({of(result) for result in self.results})
        return {
            name: Score.of((each for each in self.results if of(each) == name), self.is_argued, self.ours)
            for name in names
        }


def rule(result: Result) -> str:
    """The rule of the contract."""
    return rule_of(result.key.module, result.key.function)


def module(result: Result) -> str:
    """Its name."""
    return result.key.module


def operator(result: Result) -> str:
    """The kind of mistake."""
    return result.key.operator


def known_of(target: str, sample: Sample | None = None, *, at_least: bool = False) -> Told:
    """What the file of a target says now, of all or of a sample. ``at_least``: also of one whose survivors still wait
    for tests."""
    results = Results(FOLDER / f"{target}.jsonl")
    return Told.of(target, TARGETS[target].modules(), results, argued(), sample, at_least=at_least)


def noticed_elsewhere(name: str, modules: Mapping[str, Module]) -> set[Key]:
    """What need not be tried for a target of the suite: the suite noticed it on another format."""
    found = _elsewhere(name, modules, by_the_suite=True) if _is_suite(name) else {}
    return {key for key, (_, result) in found.items() if result.noticed}


def _is_suite(name: str) -> bool:
    return name in TARGETS and TARGETS[name].by_the_suite


def _elsewhere(
    name: str, modules: Mapping[str, Module], *, by_the_suite: bool, within: Container[Key] | None = None
) -> dict[Key, tuple[str, Result]]:
    """What other targets found of the same mutants, or of those within, those first that noticed."""
    found: dict[Key, tuple[str, Result]] = {}
    for other, target in TARGETS.items():
        if other == name or target.by_the_suite != by_the_suite:
            continue
        shared = {each: module for each, module in modules.items() if each in target.modules()}
        for result in Results(FOLDER / f"{other}.jsonl").of(shared) if shared else ():
            if (within is None or result.key in within) and (result.noticed or result.key not in found):
                found[result.key] = (other, result)
    return found


def survivors_of(target: str) -> set[Key]:
    """What no test noticed there, argued or not."""
    found = Results(FOLDER / f"{target}.jsonl").of(TARGETS[target].modules())
    return {result.key for result in found if not result.noticed}


def show(told: Told) -> None:
    """For people."""
    console = Console(width=None if Console().is_terminal else 160)
    for title, of in (("rule", rule), ("module", module), ("operator", operator)):
        table = Table()
        for column in (title, "tried", "noticed", "equivalent", "%", "ours", "% with ours"):
            table.add_column(column, justify="left" if column == title else "right")
        for name, score in told.by(of).items():
            counts = map(str, (score.tried, score.noticed, score.equivalent))
            table.add_row(name, *counts, f"{score.percent:.1f}", str(score.ours), f"{score.with_ours:.1f}")
        console.print(table)
    for result in told.unargued:
        key = result.key
        place = f"{key.module}:{result.line} {key.function}"
        console.print(f"SURVIVED {place}: {key.operator}: {key.before} -> {key.after}", markup=False, highlight=False)
    for result in told.argued_and_noticed:
        console.print(
            f"ARGUED, AND NOTICED by {told.ours.get(result.key, result).by}: {result.key}",
            markup=False,
            highlight=False,
        )
    score = told.score
    console.print(
        f"{told.name}: {score.tried} of {told.total} mutants tried, {score.noticed} noticed, {score.equivalent} argued "
        f"to be equivalent: {score.percent:.1f} % ({told.not_viable} not viable)",
        highlight=False,
    )
    if told.sample is not None:
        low, high = score.interval
        waiting = sum(result.outcome == NEAR for result in told.results)
        met, most = ("each met all tests", f"between {low:.1f} and {high:.1f} %")
        if waiting:
            met, most = f"{waiting} of the survivors have not met all tests yet", f"at least {low:.1f} %"
        console.print(f"drawn by chance, and {met}: {most} of all {told.total}", highlight=False)
