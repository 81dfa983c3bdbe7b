"""A run of several formats makes no tests but those that are named with their formats, where all are."""

from __future__ import annotations

import pytest

from laketier_conformance.manifest import formats_named

FORMATS = ["delta", "delta-lake", "of-mine"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["s/test_a.py::test_x[delta]"], {"test_a.py::test_x": ["delta"]}),
        (["test_a.py::test_x[of-mine-a/b[1]]"], {"test_a.py::test_x": ["of-mine"]}),
        (
            ["/s/test_a.py::test_x[delta-1]", "/s/test_a.py::test_x[delta-2]", "/s/test_a.py::test_x[of-mine-1]"],
            {"test_a.py::test_x": ["delta", "of-mine"]},
        ),
        # It may be of either, and pytest takes none but the one that is named.
        (["test_a.py::test_x[delta-lake]"], {"test_a.py::test_x": ["delta", "delta-lake"]}),
        (["test_a.py::test_x[delta]", "test_a.py"], {}),
        (["test_a.py::test_x[delta]", "test_a.py::test_x"], {}),
        (["test_a.py::test_x[other]"], {}),
        (["[delta]/test_a.py"], {}),
        (["laketier_conformance.test_a::test_x[delta]"], {}),
        ([], {}),
    ],
)
def test_formats_that_tests_are_named_with(arguments: list[str], expected: dict[str, list[str]]) -> None:
    assert formats_named(arguments, FORMATS) == expected


def test_of_tests_that_are_named_no_others_are_made(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Those of other formats take a minute where many formats each meet one test."""
    tests = ["test_catalog.py::test_list[localfile]", "test_types.py::test_flat[feather-int8]"]
    run = run_suite("localfile,feather", tests)
    done = {
        name: {test: result["outcome"] for test, result in run.reports[name]["results"].items()} for name in run.reports
    }
    assert done == {
        "localfile": {"test_catalog.py::test_list": "passed"},
        "feather": {"test_types.py::test_flat[int8]": "passed"},
    }, run.output


def test_an_argument_that_names_no_format_asks_for_all(run_suite) -> None:  # type: ignore[no-untyped-def]
    tests = ["test_catalog.py::test_list", "test_types.py::test_flat[feather-int8]"]
    run = run_suite("localfile,feather", tests)
    assert [sorted(run.reports[name]["results"]) for name in ("localfile", "feather")] == [
        ["test_catalog.py::test_list"],
        ["test_catalog.py::test_list", "test_types.py::test_flat[int8]"],
    ], run.output
