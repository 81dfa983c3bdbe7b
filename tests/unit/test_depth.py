"""What of several formats is left to the deep tests."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from depth import BY_TURNS, FORMATS, cases_by_turns, formats_by_turns


class _Item:
    """As much of a test as its depth is decided on."""

    def __init__(self, nodeid: str, *marks: str, **parameters: object) -> None:
        self.nodeid = nodeid + (f"[{'-'.join(map(str, parameters.values()))}]" if parameters else "")
        self.marks = list(marks)
        self.every: int | None = None
        if parameters:
            self.callspec = SimpleNamespace(params=parameters)

    def get_closest_marker(self, name: str) -> object | None:
        if name == "every" and self.every is not None:
            return pytest.mark.every(self.every).mark
        return name if name in self.marks else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def _left(*items: _Item) -> list[_Item]:
    """Those that are in `make test`."""
    made: Any = list(items)
    formats_by_turns(made)
    return [item for item in items if "deep" not in item.marks]


def test_each_case_meets_two_formats_and_two_cases_meet_all() -> None:
    items = [
        _Item(f"{BY_TURNS[0]}test_a.py::test", kind=kind, format=name) for name in FORMATS for kind in ("one", "two")
    ]
    left = _left(*items)
    assert Counter(str(item.callspec.params["kind"]) for item in left) == {"one": 2, "two": 2}
    assert {item.callspec.params["format"] for item in left} == set(FORMATS)


def test_not_all_tests_meet_the_same_two() -> None:
    items = [_Item(f"{BY_TURNS[1]}test_a.py::test_{number}", format=name) for name in FORMATS for number in range(9)]
    left = _left(*items)
    assert len(left) == 18
    assert {item.callspec.params["format"] for item in left} == set(FORMATS)


@pytest.mark.parametrize(
    ("nodeid", "marks", "more"),
    [
        ("tests/faults/test_a.py::test", ["each_format"], {}),
        ("tests/unit/test_a.py::test", [], {}),
        ("plugins/delta/tests/test_a.py::test", [], {}),
        ("tests/faults/test_a.py::test", [], {"into": "lance"}),
    ],
    ids=["marked", "of units", "of a plugin", "of two formats"],
)
def test_others_stay(nodeid: str, marks: list[str], more: dict[str, str]) -> None:
    items = [_Item(nodeid, *marks, format=name, **more) for name in FORMATS]
    assert _left(*items) == items


def test_what_has_no_format_stays() -> None:
    items = [_Item("tests/faults/test_a.py::test"), _Item("tests/faults/test_b.py::test", value=["delta"])]
    assert _left(*items) == items


def test_what_two_formats_meet_stays() -> None:
    items = [_Item("tests/faults/test_a.py::test", format=name) for name in FORMATS[:2]]
    assert _left(*items) == items


def test_every_third_case_stays_and_the_first_is_one() -> None:
    items = [_Item(f"a.py::test_{test}", value=number) for test in ("a", "b") for number in range(5)]
    for item in items:
        item.every = 3 if "test_a" in item.nodeid else None
    made: Any = items
    cases_by_turns(made)
    left = [item.nodeid for item in items if "deep" not in item.marks and item.every]
    assert left == ["a.py::test_a[0]", "a.py::test_a[3]"]
    assert not any(item.marks for item in items if item.every is None)


def test_cases_that_are_deep_anyway_are_not_counted() -> None:
    items = [_Item("a.py::test", *(["deep"] if number == 0 else []), value=number) for number in range(3)]
    for item in items:
        item.every = 2
    made: Any = items
    cases_by_turns(made)
    assert [item.nodeid for item in items if "deep" not in item.marks] == ["a.py::test[1]"]
