"""Which tests reach which lines, how long they take, and which of them start processes. Recorded once for a state of
the sources, with code that was compiled and exchanged as a mutant's is: so it is the control, too. It has a line for
each test, so a run goes on where another ended."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from laketier_verification.mutants import lines
from laketier_verification.mutants.forked import Reports, Say, Test, in_a_fork, keep_files_in, run
from laketier_verification.mutants.lines import Lines, Recorder
from laketier_verification.mutants.source import Module
from laketier_verification.mutants.targets import ROOT

_LONGEST = 600.0
"""Seconds that a test may take without a mutant."""
_FIXTURES = {"children", "interpreter", "_children"}


@dataclass(frozen=True)
class Seen:
    """One test. ``passed`` without any mutant. ``starts``: it starts a process. ``blind``: nobody saw which lines that
    one runs, so the test may reach any. ``lines``: by module."""

    seconds: float
    passed: bool
    starts: bool
    blind: bool
    lines: Mapping[str, frozenset[int]] = field(repr=False)


Profile = Mapping[str, Seen]


class NotRecorded(Exception):
    """Time was up before each test had run once. What was recorded is kept."""


def profile(
    file: Path,
    items: Sequence[pytest.Item],
    modules: Mapping[str, Module],
    reports: Reports,
    control: Any,
    until: float = math.inf,
) -> Profile:
    """Read it, or record what is not recorded yet. ``control`` puts unchanged code in. Raises `NotRecorded` when the
    monotonic clock is past ``until``."""
    state = _state(modules.values(), items)
    found = _recorded(file, state)
    left = [item for item in items if item.nodeid not in found]
    file.parent.mkdir(parents=True, exist_ok=True)
    if not found:
        file.write_text(json.dumps({"state": state}) + "\n", encoding="utf-8")

    def pass_over(items_left: Sequence[pytest.Item], *, of_others: bool) -> None:
        words = in_a_fork(
            lambda say, folder: _record(items_left, reports, control, say, folder, of_others=of_others),
            lambda _: _LONGEST,
            first=_LONGEST,  # a run that goes on may begin with the longest test
        )
        with file.open("a", encoding="utf-8") as opened, closing(words):
            for word in words:
                if "test" not in word:
                    raise RuntimeError(f"the tests did not come to an end without a mutant: {word}")
                print(json.dumps(word), file=opened, flush=True)
                found[word["test"]] = word
                if time.monotonic() > until and len(found) < len(items):
                    raise NotRecorded(f"{len(found)} of {len(items)} tests have run without a mutant")

    if left:
        pass_over(left, of_others=True)
    # A test that looks at all that processes write sees also what these record. In a fork without, no server records.
    again = [item for item in items if _may_be_disturbed(found.get(item.nodeid, {}))]
    if again:
        pass_over(again, of_others=False)
    missing = {item.nodeid for item in items} - set(found)
    if missing:
        raise RuntimeError(f"not run without a mutant: {sorted(missing)[:3]}")
    return {name: _seen(each) for name, each in found.items()}


def _recorded(file: Path, state: str) -> dict[str, Any]:
    """What an earlier run recorded of this state. Of half a line, which a killed one left, the test runs again."""
    documents = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        with suppress(json.JSONDecodeError):
            documents.append(json.loads(line))
    if not documents or documents[0] != {"state": state}:
        return {}
    return {each["test"]: each for each in documents[1:]}


def _record(
    items: Sequence[pytest.Item], reports: Reports, control: Any, say: Say, folder: Path, *, of_others: bool
) -> None:
    started = [False]

    def audit(event: str, _: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            started[0] = True

    recorder = Recorder(folder / "lines")
    shared = _Shared(recorder)
    items[0].config.pluginmanager.register(shared, "mutants-shared")
    control(folder / "code")
    keep_files_in(folder, [Test(item) for item in items])
    sys.addaudithook(audit)
    for item, after in zip(items, [*items[1:], None], strict=True):
        started[0] = bool(_FIXTURES & set(getattr(item, "fixturenames", ())))
        began = time.monotonic()
        with recorder.lines(of_others=of_others) as found:
            run(item, after, reports)
        passed = reports.passed and not reports.failed
        blind = started[0] and not recorder.others_wrote
        took, lines = shared.before(item)
        seconds = took + time.monotonic() - began
        told = {name: sorted(found[name] | lines[name]) for name in {*found, *lines}}
        say(
            {
                "test": item.nodeid,
                "seconds": seconds,
                "passed": passed,
                "starts": started[0],
                "blind": blind,
                "of_others": of_others,
                "lines": told,
            }
        )


class _Shared:
    """A plugin of pytest: what fixtures run that several tests share. Only the first of them makes these run, and with
    a mutant any may be the first."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._made: dict[pytest.FixtureDef[Any], tuple[float, Lines]] = {}
        self._now: list[pytest.FixtureDef[Any]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        began = time.monotonic()
        with self._recorder.apart() as found:
            made = yield
        self._made[fixturedef] = time.monotonic() - began, found
        self._now.append(fixturedef)
        return made

    def before(self, item: pytest.Item) -> tuple[float, Lines]:
        """Seconds and lines of those fixtures of a test that earlier tests made. Once after each test."""
        function: Any = item
        seconds, lines = 0.0, defaultdict[str, set[int]](set)
        for fixture in itertools.chain(*function._fixtureinfo.name2fixturedefs.values()):
            if fixture in self._made and fixture not in self._now:
                took, found = self._made[fixture]
                seconds += took
                for module, numbers in found.items():
                    lines[module] |= numbers
        self._now.clear()
        return seconds, lines


def _may_be_disturbed(word: Mapping[str, Any]) -> bool:
    return bool(word) and word["starts"] and not word["passed"] and word.get("of_others", True)


def _seen(document: Mapping[str, Any]) -> Seen:
    found = {name: frozenset(numbers) for name, numbers in document["lines"].items()}
    return Seen(document["seconds"], document["passed"], document["starts"], document["blind"], found)


def _state(modules: Iterable[Module], items: Sequence[pytest.Item]) -> str:
    """Of the sources, of what they and the tests stand on, and of the tests."""
    folders = ("core", "conformance", "plugins", "tests/support")
    paths = {item.path for item in items}.union(*(ROOT.glob(f"{folder}/**/*.py") for folder in folders))
    texts = {path: path.read_bytes() for path in paths}
    digest = hashlib.sha256(repr(sorted(item.nodeid for item in items)).encode())
    for recorded_by in (lines.__file__, __file__):
        digest.update(Path(recorded_by).read_bytes())
    for module in modules:
        digest.update(module.text.encode())
    for path in sorted(texts):
        digest.update(texts[path])
    return digest.hexdigest()
