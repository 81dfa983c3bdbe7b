"""The suite catches plugins that are wrong, each by the test that is there for it."""

from __future__ import annotations

import ast
import pkgutil
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from conformance_runs import Run, suite_in
from laketier_conformance.host_clocks import MISSING, shifting_library
from laketier_conformance.interposed import why_not
from laketier_verification.postgresql import binaries

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import conformance_pages

pytestmark = pytest.mark.timeout(7200)  # the first test waits for the run in which all of them are caught

FOLDER = Path(__file__).parent / "wrong_plugins"
INTERPOSED = (
    "test_answers.py::",
    "test_dropped.py::test_a_drop_at_each_step_of_a_change",
    "test_dropped.py::test_a_table_is_dropped_beside_a_look",
    "test_effects.py::",
    "test_executors.py::test_an_executor_opens_no_metadata",
    "test_summaries.py::",
    "test_locks.py::",
    "test_looks.py::",
    "test_maintenance_races.py::",
    "test_meanwhile.py::",
    "test_old_results.py::test_its_publish_was_killed",
    "test_operations.py::",
    "test_power.py::",
    "test_servers.py::test_a_round_in_which_a_server_crashes",
)
EACH_STEP = ("--lake-steps=0",)
OF_INDEXES = (
    "test_index_answers.py::",
    "test_index_builds.py::",
    "test_index_changes.py::",
    "test_index_columns.py::",
    "test_index_tellings.py::",
    "test_indexing.py::",
    "test_vector_answers.py::",
    "test_search.py::",
    "test_search_settings.py::",
    "test_foreign_updates.py::test_an_index",
    "test_power.py::test_indexes_survive",
)
"""The small correct format has no indexes: Lance is the one that they are about."""
OF_LAYOUTS = (
    "test_layout.py::test_a_layout_by_odd_columns",
    "test_layout.py::test_files_of_partitions",
    "test_layout.py::test_buckets",
    "test_layout_changes.py::test_appended_rows_of_buckets",
    "test_layout.py::test_a_split_has_one_value_of_a_transform",
    "test_layout.py::test_transforms_of_time",
    "test_filters.py::test_moments_that_calendars_do_not_reach[year]",
    "test_names.py::test_a_column_with_the_name_of_a_partition[a-column]",
    "test_partition_values.py::test_filters_on_hidden_partitions",
    "test_partition_values.py::test_filters_on_keys_of_buckets",
    "test_partition_values.py::test_filters_on_partitions[date]",
)
"""Nor has it buckets or transforms: these are about local files."""
OF_RENAMES = (
    "test_reshape.py::test_filters_after_the_old_name_is_used_again",
    "test_reshape.py::test_a_column_gets_its_first_name_back",
    "test_changes.py::test_rows_from_before_a_column_was_renamed_and_widened",
)
"""Neither it nor local files have columns whose names change: Iceberg, Delta and Lance show that these are met."""
OF_FILES = ("test_adoption.py::", "test_open_files.py::")
"""Nor does it make tables of files that lie there, or leave any open."""
OF_SERIES = ("test_series.py::",)
OF_TOOLS = ("test_foreign_tables.py::",)
"""The small format has no other tool."""
IN_A_STORE = (
    "test_dropped.py::test_a_drop_before_each_request_of_a_change_in_a_store",
    "test_object_stores.py::",
    "test_store_faults.py::",
    "test_late_stores.py::",
)
"""Local files are the correct ones here, and each run of the suite on them shows it: the small format has no stores."""
ON_POSTGRESQL = {"travels_by_the_zone_of_a_session"}
HELPERS = {
    "in_a_bucket",
    "at_work",
    "compacting",
    "crooked",
    "richer",
    "sieving",
    "correctly_made",
    "ends_its_process",
    "names_few",
    "keyed",
    "lost_races",
    "one_partition",
    "open_json",
    "over_http",
    "remembering",
    "remembering_results",
    "forgetful",
    "foldered",
    "overlaid",
    "correctly_indexed",
    "changing",
    "connected",
    "marked",
    "told",
    "local",
    "locking",
    "leaving",
    "rolling",
    "updating",
    "within",
    "sequenced",
    "sparks_numbers",
    "optioned",
    "propertied",
    "lasting",
    "correctly_lasting",
    "correctly_marked",
    "marked_by_others",
}


def _caught_by(wrong: Path) -> tuple[str, str]:
    constants = conformance_pages.constants(ast.parse(wrong.read_text(encoding="utf-8")))
    return constants["CAUGHT_BY"], constants["SAYS"]


# Each wrong plugin names the test that catches it, and words that this test then says.
CAUGHT_BY = {path.stem: _caught_by(path) for path in sorted(FOLDER.glob("*.py")) if path.stem not in HELPERS}


def _has_harness(wrong: Path) -> bool:
    found = ast.parse(wrong.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.ClassDef) and node.name == "Harness" for node in found)


# Of these each wrong plugin takes seconds, so they are deep; the formats themselves meet them in each run of the suite.
ON_SPARK = "test_spark.py::"
ENDS = "test_executors.py::test_a_process_that_used_a_table_ends"
LONG = (
    "test_damage.py::test_each_value",
    "test_index_answers.py::test_a_publish_that_is_killed",
    f"{OF_SERIES[0]}test_any_series[plain]",
)
COSTLY = (*INTERPOSED, *IN_A_STORE, ON_SPARK, "test_process.py::", "test_scale.py::", "test_depth.py::", *LONG, ENDS)


def _is_costly(test: str) -> bool:
    return test.startswith(COSTLY)


QUICK_OF = 3
"""Of so many tests of a file that can fail, `make test` sees one fail."""


def _quick() -> set[str]:
    """Of the wrong plugins that one test catches, the first: the test can fail, and says why. Of these some for each
    file of the suite. The others are deep."""
    first: dict[str, str] = {}
    for wrong, (test, _) in CAUGHT_BY.items():
        first.setdefault(test, wrong)
    files: dict[str, list[str]] = {}
    for test in sorted(first):
        if not _is_costly(test):
            files.setdefault(test.partition("::")[0], []).append(first[test])
    return {wrong for found in files.values() for wrong in found[::QUICK_OF]}


QUICK = _quick()


def test_of_each_file_of_the_suite_a_test_is_seen_to_fail_on_each_day() -> None:
    """But of those whose every wrong plugin takes seconds."""
    files = {test.partition("::")[0] for test, _ in CAUGHT_BY.values() if not _is_costly(test)}
    assert {CAUGHT_BY[wrong][0].partition("::")[0] for wrong in QUICK} == files


def _lanes(tests: Iterable[str]) -> list[str]:
    """No Spark is started but for those who need it."""
    return ["--lake-lanes=bare,spark-dataframe,spark-split"] if any(t.startswith(ON_SPARK) for t in tests) else []


def _named(wrong: str) -> str:
    return wrong.replace("_", "-")


@pytest.fixture(scope="module")
def caught(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Run:
    """One run in which each wrong plugin that was asked for meets the test that is there for it."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    asked = [item.callspec.params["wrong"] for item in items if item.originalname == test_is_caught.__name__]
    offers = {_named(wrong): wrong for wrong in asked}
    tests = []
    for name, wrong in offers.items():
        test, _ = CAUGHT_BY[wrong]
        function, bracket, parameters = test.partition("[")
        # Of one format the tests do not have its name.
        tests.append(test if len(offers) == 1 else f"{function}[{name}" + (f"-{parameters}" if bracket else "]"))
    harnesses = {name: f"{wrong}:Harness" for name, wrong in offers.items() if _has_harness(FOLDER / f"{wrong}.py")}
    run = suite_in(tmp_path_factory.mktemp("wrong"))
    # Each fails, and pytest reads the code of each call anew to show it.
    arguments = [*_lanes(tests), *EACH_STEP, "--tb=native"]
    return run(",".join(offers), tests, offers=offers, harnesses=harnesses, arguments=arguments)


def test_what_wrong_plugins_take_the_place_of_is_there() -> None:
    """Most of them are deep, and one whose function was moved away fails, but not for its mistake."""
    named = re.compile(r'"(laketier(?:_lance)?(?:\.\w+)+)"')
    for path in FOLDER.glob("*.py"):
        for name in named.findall(path.read_text(encoding="utf-8")):
            pkgutil.resolve_name(name)


@pytest.mark.parametrize(
    "wrong",
    [pytest.param(wrong, marks=[] if wrong in QUICK else [pytest.mark.deep]) for wrong in CAUGHT_BY],
)
def test_is_caught(wrong: str, caught: Run) -> None:
    test, says = CAUGHT_BY[wrong]
    if test.startswith(INTERPOSED) and why_not() is not None:
        pytest.skip(f"effects can't be seen here: {why_not()}")
    if test.endswith("whose_whole_clock_is_set_back") and shifting_library() is None:
        pytest.skip(MISSING)
    if wrong in ON_POSTGRESQL and binaries() is None:
        pytest.skip("no PostgreSQL here: no initdb, and no pgserver")
    report = caught.reports[_named(wrong)]
    assert report, caught.output
    assert {name: result["outcome"] for name, result in report["results"].items()} == {test: "failed"}, caught.output
    assert says in report["results"][test]["detail"], caught.output
    assert report["verdict"] == "fail"
    assert caught.code == 1
    assert f"failed: {test}" in caught.output


@pytest.mark.deep
def test_what_the_run_itself_was_changed_by_is_told_too(run_suite) -> None:  # type: ignore[no-untyped-def]
    """A process that is started later inherits it, and would find it there before a table is used."""
    tests = ["test_catalog.py::test_list", "test_process.py::test_work_changes_no_settings"]
    wrong = {"sets-variables-at-work": "FEATHER_THREADS", "lowers-the-limit-of-files": "RLIMIT_NOFILE"}
    run = run_suite(",".join(wrong), tests, offers={name: name.replace("-", "_") for name in wrong})
    for name, changed in wrong.items():
        result = run.reports[name]["results"][tests[1]]
        assert result["outcome"] == "failed", run.output
        assert changed in result["detail"], run.output


FEW = 16
"""One of so many tests of correct plugins is in `make test`: `test_is_caught` asks for the words of each mistake."""
SHARES = pytest.mark.parametrize(
    ("costly", "each"),
    [(False, FEW), pytest.param(False, 1, marks=pytest.mark.deep), pytest.param(True, 1, marks=pytest.mark.deep)],
)


@SHARES
def test_the_correct_one_passes_the_same_tests(costly: bool, each: int, run_suite) -> None:  # type: ignore[no-untyped-def]
    """So it is the mistake that fails them, not the way the mistakes are made."""
    others = (*OF_INDEXES, *OF_LAYOUTS, *OF_RENAMES, *OF_FILES, *OF_TOOLS, *IN_A_STORE)
    asked = {test for test, _ in CAUGHT_BY.values() if not test.startswith(others)}
    tests = sorted(test for test in asked if _is_costly(test) is costly)[::each]
    made = {"correct": "correctly_made"}
    harnesses = {"correct": "correctly_made:Harness"}
    run = run_suite("correct", tests, offers=made, harnesses=harnesses, arguments=_lanes(tests))
    unseen = why_not() is not None
    expected = {test: "not interposed" if unseen and test.startswith(INTERPOSED) else "passed" for test in tests}
    assert {test: run.outcome(test) for test in tests} == expected, run.output
    assert run.report["verdict"] == "partial", "the rest was not run"


def test_a_correct_one_with_a_long_history_passes_the_same_tests(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Whose rows others delete, change and put together."""
    tests = sorted({test for test, _ in CAUGHT_BY.values() if test.startswith(OF_SERIES)})
    made = {"correctly-lasting": "correctly_lasting"}
    run = run_suite(
        "correctly-lasting", tests, offers=made, harnesses={"correctly-lasting": "correctly_lasting:Harness"}
    )
    assert {test: run.outcome(test) for test in tests} == dict.fromkeys(tests, "passed"), run.output


def test_a_correct_one_with_another_tool_passes_the_same_tests(run_suite) -> None:  # type: ignore[no-untyped-def]
    tests = sorted({test for test, _ in CAUGHT_BY.values() if test.startswith(OF_TOOLS)})
    name = "correctly-marked"
    run = run_suite(name, tests, offers={name: "correctly_marked"}, harnesses={name: "correctly_marked:Harness"})
    assert {test: run.outcome(test) for test in tests} == dict.fromkeys(tests, "passed"), run.output


def test_local_files_pass_the_same_tests(run_suite) -> None:  # type: ignore[no-untyped-def]
    tests = sorted({test for test, _ in CAUGHT_BY.values() if test.startswith((*OF_LAYOUTS, *OF_FILES))})
    run = run_suite("localfile", tests)
    assert {test: run.outcome(test) for test in tests} == dict.fromkeys(tests, "passed"), run.output


@SHARES
def test_the_correct_indexer_passes_the_same_tests(costly: bool, each: int, run_suite) -> None:  # type: ignore[no-untyped-def]
    tests = sorted({t for t, _ in CAUGHT_BY.values() if _is_costly(t) is costly and t.startswith(OF_INDEXES)})[::each]
    if costly and why_not() is not None:
        pytest.skip(f"effects can't be seen here: {why_not()}")
    name = "correctly-indexed"
    run = run_suite(name, tests, offers={name: "correctly_indexed"}, harnesses={name: "correctly_indexed:Harness"})
    assert {test: run.outcome(test) for test in tests} == dict.fromkeys(tests, "passed"), run.output


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
