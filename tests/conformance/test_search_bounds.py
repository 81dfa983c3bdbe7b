"""Numbers in a plugin's code are made small, each where it may end a search."""

from __future__ import annotations

import gc
from pathlib import Path
from types import FunctionType

import pytest

from conformance_runs import HERE, suite_in
from laketier_conformance import search_bounds as bounds


def _newest(ids: list[int]) -> list[int]:
    return ids[-1000:]


def _told(limit: int = 1000, *, most: int = 2000) -> str:
    return f"{limit} {most} SELECT id FROM commits LIMIT 5000"


def _nested(ids: list[int]) -> list[int]:
    return [each for each in ids if each < 1000]


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (lambda: _newest([*range(9)]), [7, 8]),
        (_told, "2 3 SELECT id FROM commits LIMIT 4"),
        (lambda: _nested([*range(9)]), [0, 1]),
    ],
    ids=["negative", "default-and-text", "within"],
)
def test_a_number_is_made_small_where_it_is(function: FunctionType, answer: object) -> None:
    smaller = {1000: 2, 2000: 3, 5000: 4}
    before = function()
    code = object.__new__(bounds._Code)
    code._functions, code._named = [_newest, _told, _nested], []
    with code._with(smaller):
        assert function() == answer
    assert function() == before


def test_modes_of_files_and_small_numbers_are_left_alone() -> None:
    def opens(path: str) -> tuple[str, int, int]:
        return path, 0o755, 300

    assert bounds._numbers(opens, 300) == set()
    assert bounds._numbers(_told, 300) == {1000, 2000, 5000}


class _Fixed(type):
    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError(f"{name} of {cls.__name__} stays as it is")


class _OfC(metaclass=_Fixed):
    MOST = 1000


def test_a_class_that_takes_no_other_value_is_left_as_it_is() -> None:
    code = object.__new__(bounds._Code)
    code._functions, code._named = [_newest], [(_OfC, "MOST", 1000)]
    with code._with({1000: 2}):
        assert (_OfC.MOST, _newest([*range(9)])) == (1000, [7, 8])
    assert _newest([*range(9)]) == [*range(9)]


def test_functions_are_found_in_a_fork() -> None:
    """Its garbage collector knows nothing of what was there before it."""
    gc.freeze()
    assert bounds._functions({id(_newest.__code__): _newest.__code__}) == [_newest]


def test_numbers_for_which_there_is_no_time_are_told() -> None:
    left: list[int] = []
    assert [*bounds._guilty(object.__new__(bounds._Code), [1000, 2000], left, until=-1.0)] == []
    assert left == [1000, 2000]


@pytest.mark.deep
def test_a_history_that_is_too_long_to_be_made_is_told(tmp_path: Path) -> None:
    wrong, test = "keeps-a-million-commits", "test_depth.py::test_commits_of_others_hide_nothing"
    text = (HERE / "wrong_plugins/keeps_two_thousand_commits.py").read_text(encoding="utf-8")
    text = text.replace("2_000", "1_000_000").replace("keeps-two-thousand-commits", wrong)
    (tmp_path / "keeping.py").write_text(text, encoding="utf-8")
    asked = [f"--lake-test={test}", "--lake-commits=110"]
    run = suite_in(tmp_path)(wrong, offers={wrong: "keeping"}, arguments=asked, paths=[tmp_path])
    assert run.outcome(test) == "passed", run.output
    assert [*run.report["unproven"]] == ["watermarks and commits more than 1000000 commits back"], run.output
