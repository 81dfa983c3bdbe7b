"""The suite catches plugins that are wrong, each by the test that is there for it."""

from __future__ import annotations

from pathlib import Path

import pytest

CAUGHT_BY = {
    "loses_a_batch": "test_rounds.py::test_every_row_is_there_with_its_values",
    "commits_twice": "test_rounds.py::test_a_replay_writes_nothing",
    "wrong_counts": "test_rounds.py::test_the_counts_are_those_of_the_files",
    "visible_when_staged": "test_isolation.py::test_what_is_staged_is_not_visible",
    "ignores_the_fence": "test_decision_table.py::test_row[lower-fence]",
    "publishes_stale": "test_stale_states.py::test_of_two_drivers_one_wins[against-rows-rows]",
    "swallows_an_error": "test_unknown_outcomes.py::test_an_error_at_each_failpoint_of_the_format",
    "deletes_on_unknown_outcome": "test_unknown_outcomes.py::test_an_error_at_each_failpoint_of_the_format",
    "commits_in_two_steps": "test_kills.py::test_killed_at_each_failpoint_of_the_format",
    "skips_empty_epochs": "test_rounds.py::test_an_empty_epoch_moves_the_watermark",
    "drops_other_watermarks": "test_overwrite.py::test_watermarks_of_others_stay",
    "reuses_names": "test_discard.py::test_attempts_of_the_same_task_never_clash",
    "discards_too_much": "test_discard.py::test_only_what_was_given_is_deleted",
    "never_landed": "test_unknown_outcomes.py::test_the_effect_landed_and_the_answer_was_lost[batch]",
    "pickles_results": "test_serializer.py::test_nothing_is_unpickled",
    "ignores_what_it_lacks": "test_overwrite.py::test_all_rows_are_replaced",
    "refuses_something_else": "test_capabilities.py::test_overwrite_is_offered_on_both_sides",
    "changes_types": "test_types.py::test_flat[int8]",
    "trusts_old_schemas": "test_stale_states.py::test_a_schema_that_changed_after_staging",
}


def test_all_wrong_plugins_are_listed() -> None:
    folder = Path(__file__).parent / "wrong_plugins"
    assert {path.stem for path in folder.glob("*.py")} == {*CAUGHT_BY, "crooked", "correctly_made"}


@pytest.mark.parametrize("wrong", CAUGHT_BY)
def test_is_caught(wrong: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    name, test = wrong.replace("_", "-"), CAUGHT_BY[wrong]
    run = run_suite(name, [test], offers={name: wrong})
    assert run.report, run.output
    assert run.outcome(test) == "failed", run.output
    assert run.report["verdict"] == "fail"
    assert run.code == 1
    assert f"failed: {test}" in run.output


def test_the_correct_one_passes_the_same_tests(run_suite) -> None:  # type: ignore[no-untyped-def]
    """So it is the mistake that fails them, not the way the mistakes are made."""
    name = "correct"
    run = run_suite(name, sorted(set(CAUGHT_BY.values())), offers={name: "correctly_made"})
    assert {test: run.outcome(test) for test in CAUGHT_BY.values()} == dict.fromkeys(CAUGHT_BY.values(), "passed")
    assert run.report["verdict"] == "partial", "the rest was not run"
