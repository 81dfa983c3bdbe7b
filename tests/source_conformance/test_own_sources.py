"""Our own sources, and the third party's, are what the suite of sources asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from source_runs import run_sources

QUICK = (
    "test_offsets.py",
    "test_late.py",
    "test_same_rows.py",
    "test_bad_records.py",
    "test_expired.py",
    "test_histories.py",
)
"""Files of the suite that find most, and take seconds."""
EXPIRES = "test_expired.py::test_rows_after_an_expiry_keep_their_offsets"
OWN = tomllib.loads((Path(__file__).parents[1] / "support" / "own_sources.toml").read_text(encoding="utf-8"))
SOURCES = {"lines": ("lines", ""), **{name: (own["source"], own["harness"]) for name, own in OWN.items()}}
"""By what is read, the source and its harness."""


@pytest.mark.parametrize("name", ["lines", "files-json"])
def test_most_rules_hold(tmp_path: Path, name: str) -> None:
    source, harness = SOURCES[name]
    more = [f"--log-harness={harness}"] if harness else []
    run = run_sources(tmp_path, source, [*more, *(f"--log-test={each}" for each in QUICK)])
    assert run.code == 0, run.output
    assert run.report["as_asked"]


def test_what_is_not_shown_is_told_of_single_tests(tmp_path: Path) -> None:
    more = ["--log-harness=lake_source_harness:NothingExpiresHarness", f"--log-test={EXPIRES}"]
    run = run_sources(tmp_path, "lake", more)
    assert run.report["results"][EXPIRES]["outcome"] == "not shown", run.output
    assert "not shown: the harness: it has no expire (1 tests)" in run.output


@pytest.mark.deep
@pytest.mark.parametrize("name", SOURCES)
def test_no_rule_is_broken(tmp_path: Path, name: str) -> None:
    """What a harness does not show is told, and makes the verdict partial: no test fails."""
    source, harness = SOURCES[name]
    more = [f"--log-harness={harness}"] if harness else []
    run = run_sources(tmp_path, source, [*more, "--log-lake=localfile"])
    failed = {test for test, result in run.report["results"].items() if result["outcome"] == "failed"}
    assert failed == set(), run.output
    assert run.report["verdict"] in ("conformant", "partial"), run.output
