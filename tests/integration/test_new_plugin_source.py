"""``laketier new-plugin --kind source``: what it makes is conformant as it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import source_runs
import warmed
from laketier.cli.new_plugin.distribution import Kind, write_distribution
from laketier.cli.new_plugin.names import names_of
from laketier.spi import ConfigError

QUICK = [
    "test_offsets.py",
    "test_late.py",
    "test_tables.py",
    "test_expired.py",
    "test_failures.py::test_a_system_that_does_not_answer_is_told",
    "test_bad_records.py::test_a_bad_record_is_told_and_the_read_goes_on[between]",
    "test_rounds.py::test_rounds_bring_each_row_once",
]
"""Of the suite, what asks for most in a second or two."""


def suite(tmp_path: Path, *words: str) -> tuple[int, str]:
    """pytest, run in the author's folder, and so with the author's settings."""
    project, _ = write_distribution(names_of("acme-x", "source"), Kind.SOURCE, tmp_path)
    offers = source_runs.offered(tmp_path, "acme-x", "acme_x_log.plugin", "acme_x_log.harness:Harness")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(offers), str(project)))}
    code = warmed.run(["-q", "-p", "no:cacheprovider", *words], project, environment, tmp_path / "said")
    return code, (tmp_path / "said").read_text()


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    """A selection; the whole suite is below."""
    report = tmp_path / "report.json"
    words = [f"--log-report={report}", *(f"--log-test={test}" for test in QUICK)]
    code, said = suite(
        tmp_path, "--pyargs", "laketier_source_conformance", "--log-source=acme-x", "--log-lake=localfile", *words
    )
    assert code == 0, said
    outcomes = [result["outcome"] for result in json.loads(report.read_text())["results"].values()]
    assert outcomes.count("passed") > 40
    assert set(outcomes) == {"passed", "refused"}


def test_its_own_first_test_passes(tmp_path: Path) -> None:
    code, said = suite(tmp_path, "tests/test_reads.py")
    assert (code, "1 passed" in said) == (0, True), said


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_the_whole_suite_accepts_it(tmp_path: Path) -> None:
    """The new plugin's own tests run it."""
    code, said = suite(tmp_path)
    assert code == 0, said


@pytest.mark.parametrize(("name", "why"), [("files", "a source 'files' is installed"), ("on", "type: on")])
def test_a_name_that_can_not_be_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        names_of(name, "source")
    assert why in str(refused.value)
