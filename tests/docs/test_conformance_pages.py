"""The reports behind the table of formats are of the shape that a run writes."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import DeliveryLevel, Feature
from laketier_conformance.manifest import expected_tests
from laketier_conformance.proof import REPORT, Proof

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import conformance_pages
import report_checks

REPORTS = conformance_pages.reports(conformance_pages.REPORTS)
THIRD_PARTY = conformance_pages.reports(conformance_pages.THIRD_PARTY)


def _keys() -> set[str]:
    """Those that `Proof.report` writes, read from its source: a report takes a run."""
    tree = ast.parse(inspect.getsource(Proof.report).replace("\n    ", "\n").strip())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    keys = [{key.value for key in each.keys if isinstance(key, ast.Constant)} for each in found]
    (written,) = (each for each in keys if "report" in each)
    return written  # type: ignore[return-value]


def test_reports_are_of_the_shape_of_today() -> None:
    """As soon as there are any, there is one of each format."""
    for report in REPORTS + THIRD_PARTY:
        shape = _keys() - {"results"} | {"tests"}
        # Of an older run the options are not known.
        assert report.keys() | {"options"} == shape, f"{report['format']}: run make reports"
        assert report["shown"].keys() == report["features"].keys() <= {feature.value for feature in Feature}
        assert report["delivery"] in {level.value for level in DeliveryLevel}
        assert report["conformant"], report["why"]
        assert set(report["tests"]) <= {"passed", "refused", "not interposed"}
    formats = {report["format"] for report in REPORTS}
    assert not formats or formats >= {"delta", "feather", "iceberg", "lance", "localfile"}
    formats = {report["format"] for report in THIRD_PARTY}
    assert not formats or formats == {"ducklake", "sqlite", "vortex"}


TODAY = sorted(expected_tests())


def written(folder: Path, **changed: Any) -> Path:
    """A report as a run writes it, with some of its keys changed."""
    report = {
        "report": REPORT, "format": "acme", "plugin": "acme-lake==1.0", "suite": "laketier==1", "verdict": "conformant",
        "conformant": True, "as_asked": True, "why": [], "delivery": "exactly-once", "lanes": ["bare"], "seconds": 61.4,
        "interposed": {"rename": 7}, "places": {}, "not_interposed": [], "strides": [], "unknown_features": [],
        "seeds": {"schedules": [0, 19]}, "at": "2026-11-22T10:00:00+00:00",
        "features": {"upsert": "full", "object-stores": "full"},
        "shown": {"upsert": "full", "object-stores": "not shown"}, "unproven": {"object-stores": "no store"},
        "versions": {"python": "3.11", "laketier": "1", "pyarrow": "26", "acme-lake": "1.0", "acme": "9"},
        "results": {test: {"outcome": "passed", "seconds": 0.1} for test in TODAY},
    }  # fmt: skip
    file = folder / "acme.json"
    file.write_text(json.dumps({key: value for key, value in (report | changed).items() if value is not None}))
    return file


@pytest.mark.parametrize(("words", "folder"), [((), "REPORTS"), (("--third-party",), "THIRD_PARTY")])
def test_the_table_is_made_of_reports(
    words: tuple[str, ...], folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(conformance_pages, folder, tmp_path / "reports")
    results = {test: {"outcome": "passed", "seconds": 0.1} for test in TODAY} | {
        TODAY[1]: {"outcome": "refused", "seconds": 0}
    }
    written(tmp_path, results=results)
    assert conformance_pages.main([*words, str(tmp_path)]) == 0
    told = conformance_pages.reports(tmp_path / "reports")
    table = {row[0]: row[1] for row in conformance_pages.formats(told)}
    assert (table["upsert"], table["object-stores"]) == ("full", "not shown: no store")
    tests = f"{len(TODAY) - 1} passed, 1 refused"
    assert (table["tests"], table["libraries"], table["day"]) == (tests, "acme 9", "2026-11-22")


def test_what_is_checked_is_what_a_run_writes() -> None:
    assert report_checks.Report.model_fields.keys() == _keys()


FAILED = {TODAY[0]: {"outcome": "failed", "seconds": 0.1}}
SKIPPED = {TODAY[0]: {"outcome": "skipped", "seconds": 0.1}}
WRONG = {
    "no verdict": ({"verdict": None}, "verdict: Field required"),
    "a report of before": ({"report": REPORT - 1}, f"report: Input should be greater than or equal to {REPORT}, found"),
    "a verdict that is none": ({"verdict": "splendid"}, "verdict: Input should be 'conformant'"),
    "a failure": ({"results": FAILED}, "verdict: it is conformant, and its results make it fail"),
    "a test that was skipped": ({"results": SKIPPED}, "verdict: it is conformant, and its results make it partial"),
    "no results": ({"results": {}}, "verdict: it is conformant, and its results make it fail"),
    "a verdict too good": (
        {"verdict": "conformant-without-effects", "why": ["x"]},
        "verdict: it is conformant-without-effects, and its results make it conformant",
    ),
    "two minds": ({"conformant": False}, "conformant: it is False, and the verdict is conformant"),
    "a run by turns": (
        {
            "options": ["--lake-by-turns=test_types.py", "--lake-seed=1"],
            "verdict": "partial",
            "conformant": False,
            "why": ["x"],
        },
        "options: the run had --lake-by-turns, so its formats left tests to each other: run make reports",
    ),
    "no reason": ({"verdict": "partial", "conformant": False}, "why: it gives 0 reasons for the verdict partial"),
    "markup for a name": ({"format": "<b>"}, "format: String should match pattern"),
    "no version": ({"plugin": "acme"}, "plugin: String should match pattern"),
    "another's name": ({"format": "other"}, "format: it is other, and the file is named after acme"),
    "lines": ({"unproven": {"upsert": "a\n# b"}}, "unproven.upsert: it is no plain text: a\\n# b"),
    "no number": ({"seconds": "many"}, "seconds: Input should be a valid number, found 'many'"),
    "a feature that is none": ({"features": {"magic": "full"}}, "features.magic.[key]: Input should be 'overwrite'"),
    "a key that nobody writes": ({"stars": 5}, "stars: Extra inputs are not permitted, found 5"),
    "a feature forgotten": ({"shown": {}}, "shown: it has 0 features, and `features` has 2, or others"),
}


@pytest.mark.parametrize(("changed", "says"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_no_honest_report_is_not_taken(
    changed: dict[str, Any],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(conformance_pages, "REPORTS", tmp_path / "reports")
    written(tmp_path, **changed)
    assert conformance_pages.main([str(tmp_path)]) == 1
    assert f"acme.json: {says}" in capsys.readouterr().err
    assert not (tmp_path / "reports").exists()


def test_of_two_runs_of_a_format_none_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one would take the place of the first."""
    monkeypatch.setattr(conformance_pages, "REPORTS", tmp_path / "reports")
    folders = [tmp_path / "monday", tmp_path / "tuesday"]
    for folder in folders:
        folder.mkdir()
        written(folder)
    assert conformance_pages.main([*map(str, folders)]) == 1
    assert "acme.json: 2 of the folders have one" in capsys.readouterr().err
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("text", ["", "[1]", "{", "\udcff"])
def test_any_other_json_is_not_taken(text: str, tmp_path: Path) -> None:
    (tmp_path / "acme.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert report_checks.faults(tmp_path / "acme.json")[0].startswith("acme.json: the whole: ")


def test_a_folder_without_reports_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance_pages.main([str(tmp_path)]) == 1
    assert f"no report in {tmp_path}" in capsys.readouterr().err


def test_tests_of_another_day_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conformance_pages, "REPORTS", tmp_path / "reports")
    written(tmp_path, results={test: {"outcome": "passed", "seconds": 0.1} for test in ("test_a.py::one", *TODAY[2:])})
    assert conformance_pages.main([str(tmp_path)]) == 0
    told = "its tests are others: missing of today's MANIFEST: 2, unknown to it: 1"
    assert told in capsys.readouterr().out
