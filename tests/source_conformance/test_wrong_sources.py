"""Each wrong source is caught, by the sentence of its rule. The correct one that they alter is conformant."""

from __future__ import annotations

from pathlib import Path

import pytest

import altered_waits
from altered_changes import RIGHT, WRONG
from laketier_source_conformance.rules import RULES, rule_of
from source_runs import run_sources


def _hasty(altered: type) -> list[str]:
    """Nobody waits for minutes here; others may think for some seconds, where the machine has too much to do."""
    return ["-phasty"] if altered.__module__ == altered_waits.__name__ else []


@pytest.mark.every(5)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_source_is_caught(tmp_path: Path, name: str) -> None:
    wrong = WRONG[name]
    more = [f"--log-harness={wrong.harness}"] if wrong.harness else []
    run = run_sources(
        tmp_path, "notes", [f"--log-test={wrong.test}", *_hasty(wrong.altered), *more], {"NOTES_ALTERED": name}
    )
    assert run.code == 1, run.output
    assert run.report["verdict"] == "fail"
    (result,) = run.report["results"].values()
    assert result["outcome"] == "failed"
    assert wrong.says in result["detail"]
    assert result["rule"] == rule_of(wrong.test).id
    assert "--source notes --test" in result["again"]


def test_there_are_wrong_sources_for_most_rules() -> None:
    assert len(WRONG) >= 50
    caught = {rule_of(wrong.test).id for wrong in WRONG.values()}
    assert {rule.id for rule in RULES} - caught == {"rounds"}, "rounds meet what the other rules catch"


@pytest.mark.parametrize("name", RIGHT)
def test_an_odd_source_that_is_right_passes(tmp_path: Path, name: str) -> None:
    right = RIGHT[name]
    tests = [f"--log-test={test}" for test in right.tests]
    more = [
        *tests,
        *_hasty(right.altered),
        f"--log-harness={right.harness if ':' in right.harness else f'altered_notes:{right.harness}'}",
        "--log-lake=localfile",
    ]
    run = run_sources(tmp_path, "notes", more, {"NOTES_ALTERED": name})
    assert run.code == 0, run.output
    assert run.outcomes() == {"passed": len(right.tests)}


@pytest.mark.parametrize(
    ("harness", "outcome", "says"),
    [("AfarHarness", "refused", "files: they are its own"), ("NotesHarness", "not shown", "a read looks at no file")],
)
def test_a_source_that_reads_from_afar_is_asked_for_no_file(
    tmp_path: Path, harness: str, outcome: str, says: str
) -> None:
    """Else no verdict on it could be more than partial."""
    test = "test_failures.py::test_a_file_that_ends_early_costs_no_row"
    more = [f"--log-test={test}", f"--log-harness=altered_notes:{harness}"]
    run = run_sources(tmp_path, "notes", more, {"NOTES_ALTERED": "from_afar"})
    result = run.report["results"][test]
    assert (result["outcome"], says in result["detail"]) == (outcome, True), run.output


def test_a_source_of_few_buckets_is_not_asked_for_more(tmp_path: Path) -> None:
    test = "test_many.py::test_more_buckets_than_a_page_has_are_read"
    more = [f"--log-test={test}", "--log-harness=altered_notes:BoundedHarness"]
    run = run_sources(tmp_path, "notes", more, {"NOTES_ALTERED": "of_few_buckets"})
    result = run.report["results"][test]
    assert (result["outcome"], "32 partitions at most" in result["detail"]) == ("refused", True), run.output


@pytest.mark.deep
def test_the_source_that_they_alter_is_conformant(tmp_path: Path) -> None:
    run = run_sources(tmp_path, "notes", ["--log-lake=localfile"])
    assert run.code == 0, run.output
    assert run.report["verdict"] == "conformant"
    assert run.outcomes().keys() == {"passed", "refused"}
    assert list(run.report["cannot"]) == ["append_many"]
