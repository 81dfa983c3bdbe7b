"""Runs of the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance_runs import RunSuite, suite_in


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    """Run the suite in a process of its own, as its user would."""
    return suite_in(tmp_path)
