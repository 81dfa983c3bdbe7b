"""The reports behind the table of formats are of the shape that a run writes."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path

import pytest

from laketier.spi import DeliveryLevel, Feature
from laketier_conformance.proof import Proof

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import conformance_pages

REPORTS = conformance_pages.reports(conformance_pages.REPORTS)
THIRD_PARTY = conformance_pages.reports(conformance_pages.THIRD_PARTY)


LATER = {"as_asked", "places", "not_interposed", "strides"}
"""A report that was made before these were told says nothing of them."""


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
        assert shape - LATER <= report.keys() <= shape, f"{report['format']}: run make reports"
        assert report["shown"].keys() == report["features"].keys() <= {feature.value for feature in Feature}
        assert report["delivery"] in {level.value for level in DeliveryLevel}
        assert report["conformant"], report["why"]
        assert set(report["tests"]) <= {"passed", "refused", "not interposed"}
    formats = {report["format"] for report in REPORTS}
    assert not formats or formats >= {"delta", "feather", "iceberg", "lance", "localfile"}
    formats = {report["format"] for report in THIRD_PARTY}
    assert not formats or formats == {"ducklake", "sqlite", "vortex"}


@pytest.mark.parametrize(("words", "folder"), [((), "REPORTS"), (("--third-party",), "THIRD_PARTY")])
def test_the_table_is_made_of_reports(
    words: tuple[str, ...], folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(conformance_pages, folder, tmp_path / "reports")
    report = {
        "format": "acme", "plugin": "acme-lake==1.0", "verdict": "conformant", "delivery": "exactly-once",
        "lanes": ["bare"], "seconds": 61.4, "interposed": {"rename": 7}, "at": "2026-11-22T10:00:00+00:00",
        "shown": {"upsert": "full", "object-stores": "not shown"}, "unproven": {"object-stores": "no store"},
        "versions": {"python": "3.11", "laketier": "1", "pyarrow": "26", "acme-lake": "1.0", "acme": "9"},
        "results": {"a": {"outcome": "passed"}, "b": {"outcome": "refused"}, "c": {"outcome": "passed"}},
    }  # fmt: skip
    (tmp_path / "acme.json").write_text(json.dumps(report))
    assert conformance_pages.main([*words, str(tmp_path)]) == 0
    told = conformance_pages.reports(tmp_path / "reports")
    table = {row[0]: row[1] for row in conformance_pages.formats(told)}
    assert (table["upsert"], table["object-stores"]) == ("full", "not shown: no store")
    assert (table["tests"], table["libraries"], table["day"]) == ("2 passed, 1 refused", "acme 9", "2026-11-22")
