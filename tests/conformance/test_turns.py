"""Formats of one run that take the cases of a test by turns: no test, and no case, is left to nobody."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from laketier_conformance.manifest import expected_tests
from laketier_conformance.turns import Case, left_to_others

FOUR = ("delta", "iceberg", "lance", "localfile")


def _taken(cases: Sequence[Case]) -> dict[str, list[str]]:
    """By case, the formats that take it."""
    left = left_to_others(cases)
    return {case.name: [name for name in case.formats if case.name not in left.get(name, ())] for case in cases}


def test_each_case_is_taken_by_half_of_the_formats_and_each_format_takes_half_of_the_cases() -> None:
    """Also where two parameters vary in step."""
    cases = [
        Case(f"a.py::test[{kind}-{null}]", FOUR, frozenset(FOUR)) for kind in range(12) for null in ("null", "value")
    ]
    taken = _taken(cases)
    assert {len(formats) for formats in taken.values()} == {2}
    assert Counter(name for formats in taken.values() for name in formats) == dict.fromkeys(FOUR, 12)
    kinds: dict[str, set[str]] = defaultdict(set)
    for case, formats in taken.items():
        for name in formats:
            kinds[name].add(case.rpartition("-")[2])
    assert set(map(len, kinds.values())) == {2}, "each format meets values, and nulls"
    assert _taken(cases[::-1]) == taken, "the order of collection decides nothing"


@pytest.mark.parametrize("formats", [FOUR[:1], FOUR[:2], FOUR[:3], FOUR])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_each_format_takes_a_case_of_each_test_and_each_case_has_a_format(formats: tuple[str, ...], count: int) -> None:
    taken = _taken([Case(f"a.py::test[{number}]", formats, frozenset(formats)) for number in range(count)])
    assert all(taken.values())
    assert {name for each in taken.values() for name in each} == set(formats)
    if 1 in (len(formats), count):
        assert set(map(len, taken.values())) == {len(formats)}, "there is nobody to leave it to, or nothing else"


def test_a_test_without_cases_is_left_to_others_only_where_it_is_named() -> None:
    """Two formats take it, and of two tests not the same two."""
    names = [f"a.py::test_{number}" for number in range(6)]
    taken = _taken([Case(name, FOUR, frozenset(FOUR), alone=True) for name in names])
    assert {len(formats) for formats in taken.values()} == {2}
    assert Counter(name for formats in taken.values() for name in formats) == dict.fromkeys(FOUR, 3)
    assert set(map(tuple, _taken([Case(name, FOUR, frozenset(FOUR)) for name in names]).values())) == {FOUR}
    assert len(*_taken([Case(names[0], FOUR, frozenset(FOUR), alone=True)]).values()) == 2, (
        "also where it is the only one"
    )
    assert list(*_taken([Case(names[0], FOUR[:1], frozenset(FOUR), alone=True)]).values()) == list(FOUR[:1])


def test_what_one_format_alone_has_is_taken_by_it() -> None:
    """The others refuse it by turns: their refusals show nothing of what works."""
    taken = _taken([Case(f"a.py::test[{number}]", FOUR, frozenset({"iceberg"})) for number in range(6)])
    assert all("iceberg" in formats for formats in taken.values())
    assert {len(formats) for formats in taken.values()} == {2, 3}


@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_by_turns_ends_well_and_says_what_it_left_out(processes: int, run_suite) -> None:  # type: ignore[no-untyped-def]
    """Also where other processes collect, and the one that judges does not."""
    plain, laid = "test_serializer.py::test_garbage_is_refused", "test_layout.py::test_transforms"
    asked = {name for name in expected_tests() if name.startswith((f"{plain}[", f"{laid}["))}
    arguments = [f"--lake-by-turns=test_serializer.py,{laid}", *(f"--lake-test={name}" for name in asked)]
    arguments += ["-n", str(processes), "--dist", "loadfile"] if processes else []
    run = run_suite("correct,feather,localfile", arguments=arguments, offers={"correct": "correctly_made"})
    assert run.code == 0, run.output
    found = {
        name: {test: told["outcome"] for test, told in run.reports[name]["results"].items()} for name in run.reports
    }
    for name in asked:
        outcomes = {each: results[name] for each, results in found.items() if name in results}
        if name.startswith(laid):
            assert outcomes.pop("localfile") == "passed", "it alone has transforms"
            assert list(outcomes.values()) == ["refused"]
        else:
            assert set(outcomes.values()) == {"passed"}
            assert len(outcomes) in (1, 2)
    assert all(0 < len(results) < len(asked) for name, results in found.items()), found
    for report in run.reports.values():
        assert (report["verdict"], report["as_asked"]) == ("partial", True)
        assert arguments[0] in report["options"]


def test_a_format_that_others_took_all_from_has_not_failed(run_suite) -> None:  # type: ignore[no-untyped-def]
    """One test is asked for, and one of the two formats takes it."""
    test = "test_rounds.py::test_a_replay_writes_nothing"
    run = run_suite("feather,localfile", arguments=[f"--lake-by-turns={test}", f"--lake-test={test}"])
    assert run.code == 0, run.output
    told = sorted((len(report["results"]), report["verdict"], report["as_asked"]) for report in run.reports.values())
    assert told == [(0, "partial", True), (1, "partial", True)]
    assert "none, as only 0 of" in run.output
