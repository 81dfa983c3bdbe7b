"""Of several formats in one run, each may take every second case of a test, by turns: for runs on each day.

A case is one parameter of a test, such as a type or a step. Each test with cases is still run on each format, and each
case on about half of the formats that have what it needs, and on one at least. A test without cases that is named
itself is taken as one. What a format left to others keeps it from being called conformant.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from laketier.spi import support_of
from laketier_conformance.suite import FORMAT, NAME, Suite

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

LEFT = "laketier_left_to_others"
"""What a process of xdist tells at its end."""
_EACH = 2


@dataclass(frozen=True)
class Case:
    """One test with one parameter, and the formats that meet it. ``able`` are those that declare what it needs."""

    name: str
    formats: Sequence[str]
    able: frozenset[str]
    alone: bool = False
    """It is a test that was named itself, and not only its file."""

    @property
    def taken_with(self) -> str:
        """What its turns are counted in: its test, or its file where the whole test is left to others."""
        test, bracket, _ = self.name.partition("[")
        return test if bracket or not self.alone else test.partition("::")[0]


def left_to_others(cases: Iterable[Case]) -> dict[str, set[str]]:
    """By format, the names of the cases that it leaves to others. The same for the same cases: no draw decides."""
    tests: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        tests[case.taken_with].append(case)
    left: dict[str, set[str]] = defaultdict(set)
    for alike in tests.values():
        # Parameters that vary in step, such as each type with nulls and without, would fall to the same formats.
        alike.sort(key=lambda case: (zlib.crc32(case.name.encode()), case.name))
        for number, case in enumerate(alike):
            able = [name for name in case.formats if name in case.able]
            for formats in (able, [name for name in case.formats if name not in case.able]):
                each = min(_EACH, len(formats), _EACH if case.alone else len(alike))
                for turn, name in enumerate(formats):
                    if (number + turn) % each:
                        left[name].add(case.name)
    return left


class Turns:
    """A pytest plugin, registered where ``--lake-by-turns`` names files or tests."""

    def __init__(self, suite: Suite, named: Collection[str]) -> None:
        self._suite, self._named = suite, named

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        whose = {item: (str(told[FORMAT]), str(told[NAME])) for item in items for told in [_told(item)] if NAME in told}
        formats: dict[str, list[str]] = defaultdict(list)
        able: dict[str, set[str]] = defaultdict(set)
        for item, (name, test) in whose.items():
            if self._by_turns(test):
                formats[test].append(name)
                if self._is_able(item, name):
                    able[test].add(name)
        order = list(self._suite.proofs)
        cases = [
            Case(test, sorted(found, key=order.index), frozenset(able[test]), alone=test in self._named)
            for test, found in formats.items()
        ]
        left = left_to_others(cases)
        self._leave((name, test) for name, tests in left.items() for test in tests)
        gone = [item for item, (name, test) in whose.items() if test in left.get(name, ())]
        if gone:
            away = set(gone)
            items[:] = [item for item in items if item not in away]
            config.hook.pytest_deselected(items=gone)
        if hasattr(config, "workeroutput"):
            config.workeroutput[LEFT] = {name: sorted(tests) for name, tests in left.items()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Who judges under xdist collects nothing. A process that died has told nothing, and its run has failed."""
        told: dict[str, Any] = getattr(node, "workeroutput", {})
        self._leave((name, test) for name, tests in told.get(LEFT, {}).items() for test in tests)

    def _by_turns(self, test: str) -> bool:
        return test.partition("::")[0] in self._named or test.partition("[")[0] in self._named

    def _is_able(self, item: pytest.Item, name: str) -> bool:
        features = self._suite.plugin_of(name).features
        return all(support_of(features, each).full for marker in item.iter_markers("needs") for each in marker.args)

    def _leave(self, left: Iterable[tuple[str, str]]) -> None:
        for name, test in left:
            self._suite.proofs[name].left.add(test)


def named_by_turns(given: str, expected: Collection[str]) -> frozenset[str]:
    """The files and tests of ``--lake-by-turns``. Raises `pytest.UsageError` for one that the suite does not have."""
    named = frozenset(name.strip() for name in given.split(",") if name.strip())
    known = {part for test in expected for part in (test.partition("::")[0], test.partition("[")[0])}
    if unknown := sorted(named - known):
        raise pytest.UsageError(
            f"--lake-by-turns={unknown[0]}: the suite has no such file or test: name test_types.py, or "
            "test_types.py::test_flat, with commas between several"
        )
    return named


def _told(item: pytest.Item) -> dict[str, object]:
    return dict(item.user_properties)
