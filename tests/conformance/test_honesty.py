"""What an author's conftest.py or another plugin of pytest does to tests makes no format conformant."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance_runs import Run, suite_in

OF_ROUNDS = "test_rounds.py::test_"
COUNTS = f"{OF_ROUNDS}the_counts_are_those_of_the_files"
"""The one that fails."""
MEDDLING = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "many_tasks" in item.name:
            item.add_marker(pytest.mark.skip(reason="for later"))
        if "results_come" in item.name:
            item.add_marker(pytest.mark.xfail(reason="known"))
        if "without_any_task" in item.name:
            item.obj = lambda: None
    items[:] = [item for item in items if "take_turns" not in item.name]

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True if "empty_first" in pyfuncitem.name else None

@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and "the_counts" in item.name:
        report.outcome, report.longrepr = "passed", None
    return report
"""
ASKED = {
    COUNTS: ("failed", "rows that the committer counts"),
    f"{OF_ROUNDS}a_replay_writes_nothing": ("passed", ""),
    f"{OF_ROUNDS}many_tasks_are_one_commit": ("skipped", "for later"),
    f"{OF_ROUNDS}results_come_in_any_order": ("failed", ""),
    f"{OF_ROUNDS}an_epoch_without_any_task": ("failed", "was replaced by one that is not of the suite"),
    f"{OF_ROUNDS}an_empty_first_epoch": ("failed", "was never called"),
    f"{OF_ROUNDS}two_pipelines_take_turns": ("not run", ""),
}


@pytest.fixture(scope="module")
def meddled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("meddled")
    (folder / "meddling.py").write_text(MEDDLING)
    wrong = "wrong-counts"
    asked = [f"--lake-test={test}" for test in ASKED]
    arguments = [*asked, "-p", "meddling"]
    return suite_in(folder)(wrong, offers={wrong: "wrong_counts"}, arguments=arguments, paths=[folder])


@pytest.mark.parametrize("test", ASKED)
def test_a_test_that_was_meddled_with_passes_nothing(test: str, meddled: Run) -> None:
    outcome, says = ASKED[test]
    result = meddled.report["results"].get(test, {"outcome": "not run"})
    assert result["outcome"] == outcome, meddled.output
    assert says in result.get("detail", "")


def test_the_verdict_is_none_of_conformance(meddled: Run) -> None:
    assert (meddled.code, meddled.report["verdict"], meddled.report["conformant"]) == (1, "fail", False)


PATCHING = """
import pytest
from unittest.mock import Mock

import laketier_conformance.expect
from laketier_conformance import lake, test_rounds

@pytest.fixture(autouse=True)
def easy(request, monkeypatch):
    if "a_replay_writes" in request.node.name:
        monkeypatch.setattr(lake.Table, "ids", property(lambda self: []))
    if "many_tasks" in request.node.name:
        monkeypatch.setattr(laketier_conformance.expect, "expect", lambda *sentence: None)
    if "results_come" in request.node.name:
        monkeypatch.setattr(test_rounds, "expect", Mock())
    if "without_any_task" in request.node.name:
        monkeypatch.setattr(lake.Table.append, "__code__", (lambda self, epoch, *tasks, **fields: None).__code__)
    yield
"""
PATCHED = {
    f"{OF_ROUNDS}a_replay_writes_nothing": "laketier_conformance.lake.Table.ids was replaced",
    f"{OF_ROUNDS}many_tasks_are_one_commit": ".expect is not that of laketier_conformance.expect",
    f"{OF_ROUNDS}results_come_in_any_order": "laketier_conformance.test_rounds.expect",
    f"{OF_ROUNDS}an_epoch_without_any_task": "laketier_conformance.lake.Table.append was replaced",
    f"{OF_ROUNDS}two_pipelines_take_turns": "",
}


def test_functions_of_the_suite_that_were_replaced_pass_nothing(tmp_path: Path) -> None:
    (tmp_path / "patching.py").write_text(PATCHING)
    asked = [f"--lake-test={test}" for test in PATCHED]
    run = suite_in(tmp_path)("localfile", arguments=[*asked, "-p", "patching"], paths=[tmp_path])
    for test, says in PATCHED.items():
        result = run.report["results"][test]
        assert result["outcome"] == ("failed" if says else "passed"), run.output
        assert says in result.get("detail", ""), run.output


def test_a_plugin_that_says_that_nothing_shows_its_feature(tmp_path: Path) -> None:
    """It would be declared, not shown, and conformant."""
    wrong, test = "is-not-shown", "test_overwrite.py::test_all_rows_are_replaced"
    run = suite_in(tmp_path)(wrong, offers={wrong: "is_not_shown"}, arguments=[f"--lake-test={test}"])
    assert run.outcome(test) == "failed", run.output
    assert "the plugin raised the suite's own NotShown" in run.report["results"][test]["detail"]
    assert "overwrite" not in run.report["unproven"], run.output
