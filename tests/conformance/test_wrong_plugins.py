"""The suite catches plugins that are wrong, each by the test that is there for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance_runs import Run, suite_in
from laketier_conformance.interposed import why_not

# The wrong plugin: the test that catches it, and what that test then says.
CAUGHT_BY = {
    "loses_a_batch": ("test_rounds.py::test_every_row_is_there_with_its_values", "assert [0, 1, 2"),
    "commits_twice": ("test_rounds.py::test_a_replay_writes_nothing", "<RoundOutcome.PUBLISHED"),
    "wrong_counts": ("test_rounds.py::test_the_counts_are_those_of_the_files", "assert 17 == 7"),
    "visible_when_staged": ("test_isolation.py::test_what_is_staged_is_not_visible", "== [0, 1, 2, 3, 4]"),
    "ignores_the_fence": ("test_decision_table.py::test_row[lower-fence]", "DID NOT RAISE Fenced"),
    "publishes_stale": (
        "test_stale_states.py::test_of_two_drivers_one_wins[against-rows-rows]",
        "DID NOT RAISE Conflict",
    ),
    "swallows_an_error": (
        "test_unknown_outcomes.py::test_an_error_at_each_failpoint_of_the_format",
        "an error at publish.before_manifest was swallowed",
    ),
    "deletes_on_unknown_outcome": (
        "test_unknown_outcomes.py::test_an_error_at_each_failpoint_of_the_format",
        "a data file can't be read",
    ),
    "commits_in_two_steps": (
        "test_kills.py::test_killed_at_each_failpoint_of_the_format",
        "publish.after_manifest_before_renames",
    ),
    "skips_empty_epochs": ("test_rounds.py::test_an_empty_epoch_moves_the_watermark", "assert 0 == 1"),
    "drops_other_watermarks": ("test_overwrite.py::test_watermarks_of_others_stay", "WatermarkLost"),
    "reuses_names": ("test_discard.py::test_attempts_of_the_same_task_never_clash", "task-0.feather"),
    "discards_too_much": ("test_discard.py::test_only_what_was_given_is_deleted", "a staged file is gone"),
    "never_landed": (
        "test_unknown_outcomes.py::test_the_effect_landed_and_the_answer_was_lost[batch]",
        "blished'>, 10) == (<",
    ),
    "pickles_results": ("test_serializer.py::test_nothing_is_unpickled", "DID NOT RAISE SerializationError"),
    "ignores_what_it_lacks": (
        "test_overwrite.py::test_all_rows_are_replaced",
        "overwrite is declared unsupported, and was not refused",
    ),
    "refuses_something_else": (
        "test_capabilities.py::test_overwrite_is_offered_on_both_sides",
        "overwrite is declared unsupported, and bucketing was refused instead",
    ),
    "changes_types": ("test_types.py::test_flat[int8]", "int8 silently became int64"),
    "publishes_what_is_gone": (
        "test_confinement.py::test_a_staged_file_that_is_gone_is_not_published",
        "DID NOT RAISE Refused",
    ),
    "checks_names_alone": (
        "test_confinement.py::test_a_staged_file_that_is_another_one_is_not_published[cut]",
        "DID NOT RAISE Refused",
    ),
    "deletes_elsewhere": (
        "test_confinement.py::test_a_forged_result_deletes_nothing_elsewhere",
        "theirs",
    ),
    "deletes_files_of_others": (
        "test_confinement.py::test_a_forged_result_deletes_no_other_file_of_the_table",
        ".feather",
    ),
    "publishes_files_of_others": (
        "test_confinement.py::test_a_forged_result_publishes_no_other_file_of_the_table",
        "DID NOT RAISE Refused",
    ),
    "follows_links": (
        "test_confinement.py::test_collection_follows_no_link_in_the_table",
        "'theirs'] == []",
    ),
    "writes_while_listing": (
        "test_confinement.py::test_listing_changes_nothing",
        "listed.log",
    ),
    "marks_the_epoch_later": ("test_effects.py::test_a_round_is_killed", "the replay ended as 'published'"),
    "checks_then_renames": (
        "test_effects.py::test_a_rival_before_each_effect",
        "rows of the rival are lost or doubled",
    ),
    "takes_failures_for_success": ("test_effects.py::test_an_effect_of_a_round_fails", "acknowledged, and not there"),
    "makes_half_tables": ("test_effects.py::test_creating_is_killed", "there is no table db.t"),
    "drops_file_by_file": ("test_effects.py::test_dropping_is_killed", "a data file can't be read"),
    "skips_by_cut_text": ("test_filters.py::test_filters_on_each_type[text]", "and this one ["),
    "trusts_old_schemas": (
        "test_stale_states.py::test_a_schema_that_changed_after_staging",
        "DID NOT RAISE TableChanged",
    ),
}


EFFECTS = "test_effects.py::"
HELPERS = {"crooked", "correctly_made", "ends_its_process", "names_few"}


def test_all_wrong_plugins_are_listed() -> None:
    folder = Path(__file__).parent / "wrong_plugins"
    assert {path.stem for path in folder.glob("*.py")} == {*CAUGHT_BY, *HELPERS}


def _named(wrong: str) -> str:
    return wrong.replace("_", "-")


@pytest.fixture(scope="module")
def caught(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run in which each wrong plugin meets the test that is there for it."""
    tests = []
    for wrong, (test, _) in CAUGHT_BY.items():
        function, bracket, parameters = test.partition("[")
        tests.append(f"{function}[{_named(wrong)}" + (f"-{parameters}" if bracket else "]"))
    offers = {_named(wrong): wrong for wrong in CAUGHT_BY}
    return suite_in(tmp_path_factory.mktemp("wrong"))(",".join(offers), tests, offers=offers)


@pytest.mark.parametrize("wrong", CAUGHT_BY)
def test_is_caught(wrong: str, caught: Run) -> None:
    test, says = CAUGHT_BY[wrong]
    if test.startswith(EFFECTS) and why_not() is not None:
        pytest.skip(f"effects can't be seen here: {why_not()}")
    report = caught.reports[_named(wrong)]
    assert report, caught.output
    assert {name: result["outcome"] for name, result in report["results"].items()} == {test: "failed"}, caught.output
    assert says in report["results"][test]["detail"], caught.output
    assert report["verdict"] == "fail"
    assert caught.code == 1
    assert f"failed: {test}" in caught.output


def test_the_correct_one_passes_the_same_tests(run_suite) -> None:  # type: ignore[no-untyped-def]
    """So it is the mistake that fails them, not the way the mistakes are made."""
    tests = sorted({test for test, _ in CAUGHT_BY.values()})
    run = run_suite("correct", tests, offers={"correct": "correctly_made"})
    unseen = why_not() is not None
    expected = {test: "not interposed" if unseen and test.startswith(EFFECTS) else "passed" for test in tests}
    assert {test: run.outcome(test) for test in tests} == expected, run.output
    assert run.report["verdict"] == "partial", "the rest was not run"


def test_what_a_plugin_does_not_name_is_declared_unsupported(run_suite) -> None:  # type: ignore[no-untyped-def]
    tests = {
        "test_declaration.py::test_what_is_unsupported_has_a_reason": "passed",
        "test_overwrite.py::test_all_rows_are_replaced": "passed",
        "test_indexing.py::test_indexing": "refused",
        "test_capabilities.py::test_a_table_of_everything": "refused",
    }
    run = run_suite("names-few", list(tests), offers={"names-few": "names_few"})
    assert {test: run.outcome(test) for test in tests} == tests, run.output
    assert "does not name this feature" in run.report["features"]["indexing"]
