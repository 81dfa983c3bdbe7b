"""The reports of our own sources are whole, and of the suite as it was when they were made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def source_reports(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import source_reports

    yield source_reports
    sys.modules.pop("source_reports")


def test_a_report_that_lacks_tests_is_refused(source_reports) -> None:
    tests = source_reports.expected_tests(source_reports.MANIFEST)
    whole = {"report": source_reports.REPORT, "source": "s", "results": {test: {"outcome": "passed"} for test in tests}}
    assert source_reports.fault_of(whole) is None
    first = next(iter(tests))
    part = {**whole, "results": {test: each for test, each in whole["results"].items() if test != first}}
    assert "of today's" in source_reports.fault_of(part)
    assert source_reports.fault_of({**whole, "report": 99}) == "it is no report of a source"


def test_results_are_counted_by_their_rules(source_reports) -> None:
    results = {"test_offsets.py::test_offsets_grow_with_the_log": {"outcome": "passed"}}
    counted = source_reports.small({"results": results, "source": "s"})
    assert counted["rules"]["offsets"] == {"passed": 1}
    assert "results" not in counted


def test_each_kept_report_is_of_a_source_that_is_run(source_reports) -> None:
    kept = {file.stem for file in source_reports.REPORTS.glob("*.json")}
    assert kept <= set(source_reports.OWN)
    assert all("| **failed**" not in line for line in (ROOT / "docs/proof/sources.md").read_text().splitlines())


def test_a_run_without_a_report_is_told_by_its_own_words(source_reports, tmp_path: Path, monkeypatch, capfd) -> None:
    """And the report of an earlier run is not taken for it."""
    monkeypatch.setattr(source_reports, "ARTIFACTS", tmp_path / "artifacts")
    monkeypatch.setattr(source_reports, "REPORTS", tmp_path / "kept")
    unknown = {"source": "lake", "harness": "no_such_module:Harness"}
    monkeypatch.setattr(source_reports, "OWN", {"first": unknown, "second": unknown})
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "first.json").write_text("{}")
    assert source_reports.main([]) == 1
    told = capfd.readouterr()
    assert told.out.count("no_such_module") >= 2
    assert [line.partition(":")[0] for line in told.err.splitlines() if "wrote a report" in line] == ["first", "second"]
    assert not list((tmp_path / "kept").iterdir())
