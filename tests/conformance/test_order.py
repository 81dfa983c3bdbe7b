"""Tests of the suite come in any order: plugins of pytest shuffle them, and those of xdist spread them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance_runs import SUITE, RunSuite
from laketier_conformance.lake import Lake, SharedTable

BACKWARDS = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.reverse()
"""
SHARES = re.compile(r'fixture\(scope="module"\)')


def test_a_table_that_several_tests_read_is_written_by_none(tmp_path: Path) -> None:
    made = Lake("localfile", str(tmp_path), {}).create()
    made.append(0)
    shared = SharedTable(made.lake, made.path)
    with pytest.raises(AssertionError, match=r"several tests read db\.t"):
        shared.append(1)
    assert shared.ids == made.ids == [0, 1, 2, 3, 4]


@pytest.mark.deep
@pytest.mark.slow
def test_modules_whose_tests_share_something_backwards(run_suite: RunSuite, tmp_path: Path) -> None:
    (tmp_path / "backwards.py").write_text(BACKWARDS)
    files = sorted(file.name for file in SUITE.glob("test_*.py") if SHARES.search(file.read_text(encoding="utf-8")))
    assert "test_source.py" in files
    run = run_suite("localfile", files, arguments=["-p", "backwards"], paths=[tmp_path])
    assert run.report["verdict"] == "partial", "other files were left out"
    assert [line for line in run.report["why"] if not line.startswith("not run: ")] == []
