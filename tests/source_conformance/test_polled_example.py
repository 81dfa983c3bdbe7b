"""The example of a source, which polls tables of a database, is what the suite of sources asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from source_runs import offered, run_sources

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sources"
QUICK = ("test_late.py", "test_expired.py", "test_histories.py", "test_tables.py")


def outcomes(tmp_path: Path, *words: str) -> set[str]:
    offers = offered(tmp_path, "polled", "polled", "polled_harness:PolledHarness")
    run = run_sources(tmp_path, "polled", ["--log-lake=localfile", *words], path=(offers, EXAMPLES))
    assert run.code == 0, run.output
    return set(run.outcomes())


def test_most_rules_hold(tmp_path: Path) -> None:
    assert outcomes(tmp_path, *(f"--log-test={each}" for each in QUICK)) == {"passed", "refused"}


@pytest.mark.deep
def test_no_rule_is_broken(tmp_path: Path) -> None:
    assert outcomes(tmp_path) == {"passed", "refused"}
