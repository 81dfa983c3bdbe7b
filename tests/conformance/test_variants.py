"""The local file format with each of its other file formats, in the bare lane."""

from __future__ import annotations

import pytest

VARIANTS = ["json", "csv", "arrow"]
HARNESS = "laketier_localfile.conformance:Harness"
SHORT = ["test_types.py", "test_rounds.py", "test_source.py", "test_damage.py", "test_torn.py", "test_upsert.py"]


def variant(name: str, run_suite, tests=(), **arguments):  # type: ignore[no-untyped-def]
    identifier = f"localfile-{name}"
    run = run_suite(
        identifier,
        list(tests),
        offers={identifier: f"localfile_{name}"},
        harnesses={identifier: HARNESS},
        **arguments,
    )
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert outcomes, run.output
    assert {test for test, outcome in outcomes.items() if outcome not in ("passed", "refused")} == set(), run.output
    return outcomes


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", VARIANTS)
def test_each_file_format_keeps_what_touches_its_files(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    variant(name, run_suite, SHORT)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", VARIANTS)
def test_each_file_format_conforms(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    variant(name, run_suite)
