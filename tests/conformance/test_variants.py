"""The local file format with each of its other file formats and layouts, in the bare lane."""

from __future__ import annotations

import pytest

from laketier_conformance.interposed import why_not

VARIANTS = ["json", "csv", "arrow", "vortex"]
HARNESS = "laketier_localfile.conformance:Harness"
SHORT = [
    *("test_types.py", "test_source.py", "test_torn.py"),
    *("test_damage.py::test_each_file_is_written_over", "test_damage.py::test_each_file_is_another_of_its_kind"),
    *("test_rounds.py::test_rounds_follow_each_other", "test_rounds.py::test_the_counts_are_those_of_the_files"),
    *("test_upsert.py::test_appends_and_upserts_take_turns", "test_upsert.py::test_after_a_column_was_added"),
    "test_changes.py::test_splits_travel_and_are_read_by_some_columns",
]
VALUES = ["test_types.py", "test_rounds.py::test_rounds_follow_each_other"]
QUICK = {"csv": VALUES, "arrow": VALUES, "vortex": VALUES}
"""Formats of whose files `make test` asks for values and rounds alone; JSON meets all of ``SHORT``. Damage of
metadata is left out: they are the same whatever format the files of rows have."""
LAYOUTS = {
    "timed": ["test_layout.py", "test_partition_values.py"],
    "outside": ["test_partition_values.py", "test_overwrite_partitions.py"],
}
"""Ways to lay files out, and what of the suite makes tables that have them."""
OF_THE_VARIANT = {
    "test_declaration.py::test_importing_the_plugin_imports_no_engine",
    "test_executors.py::test_an_executor_writes_with_what_it_was_given",
}
"""A variant is not in the package whose plugin it is, and these take that for an engine, and another format."""
NOT_HELD = {"vortex": {"test_types.py::test_nested[map]", "test_types.py::test_nested[struct-of-map]"}}
"""Types that a format with nested types has to hold, and this one refuses."""


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
    failed = {test for test, outcome in outcomes.items() if outcome not in ("passed", "refused")}
    assert failed - OF_THE_VARIANT == NOT_HELD.get(name, set()) & set(outcomes), run.output


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", VARIANTS)
def test_each_file_format_keeps_what_touches_its_files(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    variant(name, run_suite, QUICK.get(name, SHORT))


@pytest.mark.every(2)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_keeps_what_touches_its_folders(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    variant(name, run_suite, LAYOUTS[name])


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [*VARIANTS, *LAYOUTS])
def test_each_file_format_conforms(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    variant(name, run_suite)


@pytest.mark.every(2)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["still", "reshaped"])
def test_what_a_series_leaves_to_a_format(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    """A log of rows may have nothing to tell of an overwrite of nothing with nothing, whose watermark is stored all the
    same. A snapshot may have the columns that it had at any time while it was the newest."""
    run = run_suite(name, ["test_series.py"], offers={name: name}, harnesses={name: f"{name}:Harness"})
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert {*outcomes.values()} == {"passed", "refused"}, run.output
    assert outcomes["test_series.py::test_any_series[partitioned]"] == "passed", run.output


def test_a_format_may_call_some_of_its_refusals_another_incompatible_data(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Also where these rows are met only while those are looked for that can't be stored."""
    test = "test_unstorable.py::test_nulls_where_none_may_be"
    run = run_suite("two-refusals", [test], offers={"two-refusals": "two_refusals"})
    assert run.outcome(test) == "passed", run.output


def test_a_format_may_refuse_a_key_that_it_cannot_hold(run_suite) -> None:  # type: ignore[no-untyped-def]
    """And tell the others apart."""
    test = "test_upsert_keys.py::test_keys_that_are_alike[text]"
    run = run_suite("no-empty-keys", [test], offers={"no-empty-keys": "no_empty_keys"})
    assert run.outcome(test) == "passed", run.output


@pytest.mark.skipif(why_not() is not None, reason="effects can't be seen here")
def test_a_reader_may_open_the_lock_file_that_is_there(run_suite) -> None:  # type: ignore[no-untyped-def]
    """On a mount that can only be read that fails, and the report says so: it is no file of the reader's."""
    test = "test_looks.py::test_a_mount_that_can_only_be_read"
    run = run_suite("locked", [test], offers={"locked": "locked"})
    assert run.outcome(test) == "passed", run.output
    told = "a reader opens a file to be written, as a database does: EROFS from openat warehouse/db/t.lock"
    assert told in run.output


@pytest.mark.deep
@pytest.mark.skipif(why_not() is not None, reason="effects can't be seen here")
def test_a_database_in_one_file_is_asked_what_others_are(run_suite) -> None:  # type: ignore[no-untyped-def]
    """No table of it has a folder, and while it is open it has three files, which a task that reads opens."""
    tests = {
        "test_bits.py::test_a_bit_of_a_file_has_another_value": "passed",
        "test_executors.py::test_an_executor_opens_no_metadata": "passed",
        "test_looks.py::test_a_look_at_a_table_fails[rows]": "passed",
        "test_looks.py::test_a_mount_that_can_only_be_read": "passed",
    }
    run = run_suite("one-file", list(tests), offers={"one-file": "one_file"})
    assert {test: run.outcome(test) for test in tests} == tests, run.output
    told = [line for line in run.output.splitlines() if "declared, not shown" in line]
    assert len(told) == 1, run.output
    assert "metadata that executors read" in told[0], run.output


def test_a_format_may_collect_links_of_its_own(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Those of others in its folders are theirs."""
    test = "test_confinement.py::test_collection_follows_no_link_in_the_table"
    run = run_suite("linking", [test], offers={"linking": "linking"})
    assert run.outcome(test) == "passed", run.output


def test_a_writer_may_keep_what_is_no_file(run_suite) -> None:  # type: ignore[no-untyped-def]
    """And another file than an open one may grow by each commit, and be that of an earlier one where it is cut."""
    run = run_suite("holding", ["test_open_files.py"], offers={"holding": "holding"})
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert len(outcomes) == 7, run.output
    assert {*outcomes.values()} == {"passed"}, run.output


def test_a_commit_that_lost_may_leave_what_others_share(run_suite) -> None:  # type: ignore[no-untyped-def]
    """A file that is named by its content is another task's as well."""
    test = "test_orphans.py::test_what_went_well_leaves_no_orphans"
    run = run_suite("by-content", [test], offers={"by-content": "by_content"})
    assert run.outcome(test) == "passed", run.output


def test_an_option_that_has_rows_in_its_name_may_say_other_things(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Where a file ends is said by those that are called so."""
    test = "test_writer.py::test_a_task_of_many_small_files_or_groups[files]"
    run = run_suite("small-files", [test], offers={"small-files": "small_files"})
    assert run.report["results"][test]["outcome"] == "passed", run.output


def test_what_no_contract_says_of_order_columns_and_drops(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Nobody promises the order of rows. Of a table that is not there, "it is not there" is as right as "no drops". A
    table may have fewer than a thousand columns at most, fewer of partitions, and no floats of 32 bits."""
    dropping, wide = "test_catalog.py::test_dropping_what_is_no_table", "test_names.py::test_a_thousand_columns"
    parts, smaller = (
        "test_partition_values.py::test_values_of_one_task_stay_apart",
        "test_writer.py::test_a_smaller_type_that_fits_is_taken",
    )
    narrow = {wide: "passed", parts: "passed", smaller: "passed"}
    tests = [f"{dropping}[turned]", f"{wide}[turned]", *(f"{each}[narrow]" for each in narrow)]
    run = run_suite("turned,narrow", tests, offers={"turned": "turned", "narrow": "narrow"})
    outcomes = {
        name: {test: result["outcome"] for test, result in run.reports[name]["results"].items()} for name in run.reports
    }
    assert outcomes == {"turned": {dropping: "refused", wide: "passed"}, "narrow": narrow}, run.output
