"""Formats whose tables or catalog are behind a server: the suite meets what they send, and says what it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance_runs import Run, RunSuite
from laketier.spi import ConfigError, LaketierError, StorageError
from laketier_conformance.interposed import why_not
from laketier_conformance.option_values import why_no_help
from laketier_conformance.outside import is_on_disk, local_folder
from laketier_verification.postgresql import binaries

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"effects can't be seen here: {why_not()}")

NOT_ON_S3 = {
    # A plugin of the tests is not in the package whose plugin it is, and this takes that for another format.
    "test_executors.py::test_an_executor_writes_with_what_it_was_given",
}
"""What local files in S3 do not show to the suite."""

LOST, CUT = "test_effects.py::test_an_answer_is_lost", "test_power.py::test_what_was_answered_survives"
ANSWERS = (
    "test_answers.py::test_an_answer_to_a_round",
    "test_answers.py::test_an_answer_to_a_publish_is_no_conflict",
)
CRASHED = (
    "test_servers.py::test_what_a_server_answered_survives_its_crash",
    "test_servers.py::test_what_a_task_staged_is_published_whole_or_refused_after_a_crash",
    "test_servers.py::test_a_round_in_which_a_server_crashes",
)
READ = "test_servers.py::test_an_account_that_may_only_read"
KILLED, FAILED = "test_effects.py::test_a_round_is_killed", "test_effects.py::test_an_effect_of_a_round_fails"


def judged(run_suite: RunSuite, name: str, *tests: str) -> Run:
    module = name.replace("-", "_")
    run = run_suite(name, [*tests, CUT], offers={name: module}, harnesses={name: f"{module}:Harness"})
    expected = {**dict.fromkeys(tests, "passed"), CUT: "not interposed"}
    assert {test: run.outcome(test) for test in expected} == expected, run.output
    [peer] = [place for place in run.report["places"] if place.startswith("tcp 127.0.0.1:")]
    assert run.report["places"][peer] == run.report["interposed"]["sends"]
    assert run.report["interposed"]["answers lost"] > 0
    [unseen] = run.report["not_interposed"]
    assert unseen.startswith(f"power cuts: rows or watermarks may be with {peer}")
    return run


def test_a_database(run_suite: RunSuite) -> None:
    """A server of a few lines. Its wrong client is one of the wrong plugins."""
    run = judged(run_suite, "rows-on-a-server", LOST, *ANSWERS)
    assert run.report["interposed"]["answers of servers"] > 0
    assert "  of these: " in run.output
    assert "  not interposed: power cuts" in run.output


def test_a_warehouse_that_a_server_knows_by_a_name(run_suite: RunSuite) -> None:
    """It is no folder, so nothing is asked of folders; and what the server says of an account is said well enough."""
    name, module = "tables-by-name", "tables_by_name"
    in_a_bucket = ["test_capabilities.py::test_object_stores", "test_object_stores.py::test_rounds"]
    tests = ["test_places.py", "test_options.py", CRASHED[-1], *in_a_bucket]
    run = run_suite(name, tests, offers={name: module}, harnesses={name: f"{module}:Harness"})
    # The guide has it refuse whatever is none of its names by `ConfigError`, and a bucket is none.
    assert {run.outcome(test) for test in in_a_bucket} == {"refused"}, run.output
    failed = {test: result for test, result in run.report["results"].items() if result["outcome"] == "failed"}
    assert not failed, run.output
    not_shown = run.report["unproven"]
    assert not_shown["a table that was moved"] == "the warehouse is no local folder"
    assert not_shown["a warehouse that was moved and a copy of it"] == "the warehouse is no local folder"
    assert not_shown["power-cut"].startswith("the format's harness has no crash")


def test_a_folder_that_is_called_as_a_warehouse_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is somebody else's, and the suite would damage files in it."""
    monkeypatch.chdir(tmp_path)
    lake = tmp_path / "a lake"
    lake.mkdir()
    assert (local_folder("a lake"), is_on_disk("a lake")) == (None, False)
    for name in (str(lake), lake.as_uri()):
        assert (local_folder(name), is_on_disk(name)) == (lake, True)
    assert not is_on_disk(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("error", "of_a_server", "lacking"),
    [
        (StorageError("refused", why="role 'odd' does not exist"), True, None),
        (StorageError("refused", why="role 'odd' does not exist"), False, "it does not name account"),
        (StorageError("refused", why="no such role"), True, "it does not tell the value, 'odd'"),
        (StorageError("refused", why="no such account"), True, None),
        (StorageError("role 'odd' does not exist"), True, "it does not say what is allowed"),
        (ConfigError("refused", why="'odd' is none"), True, "it does not name account"),
    ],
)
def test_what_a_server_says_of_an_option(error: LaketierError, of_a_server: bool, lacking: str | None) -> None:
    assert why_no_help(error, "account", "odd", of_a_server=of_a_server) == lacking


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_iceberg_with_a_catalog_behind_http(run_suite: RunSuite) -> None:
    """Each request of each operation meets each fault."""
    operations = ("create", "alter", "drop", "overwrite", "upsert", "discard", "collect")
    tests = [*ANSWERS, *(f"test_answers.py::test_an_answer_to_an_operation[{each}]" for each in operations)]
    run = judged(run_suite, "iceberg-on-rest", LOST, *tests)
    assert run.report["interposed"]["answers of servers"] > 100


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_delta_in_an_object_store(run_suite: RunSuite) -> None:
    judged(run_suite, "delta-on-s3", LOST, KILLED, FAILED)


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_local_files_in_an_object_store(run_suite: RunSuite) -> None:
    judged(run_suite, "localfile-on-s3", LOST, KILLED, FAILED)


@pytest.mark.deep
@pytest.mark.timeout(7200)
def test_local_files_in_an_object_store_conform(run_suite: RunSuite) -> None:
    """All of the suite, but for what a table on a server is not asked."""
    name = "localfile-on-s3"
    module = "localfile_on_s3"
    run = run_suite(name, offers={name: module}, harnesses={name: f"{module}:Harness"})
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert len(outcomes) > 500, run.output
    failed = {test for test, outcome in outcomes.items() if outcome not in ("passed", "refused", "not interposed")}
    assert failed == NOT_ON_S3, run.output


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.skipif(binaries() is None, reason="no PostgreSQL here: no initdb, and no pgserver")
def test_iceberg_with_a_catalog_in_postgresql(run_suite: RunSuite) -> None:
    judged(run_suite, "iceberg-on-postgresql", LOST, KILLED, FAILED, *ANSWERS, *CRASHED, READ)
