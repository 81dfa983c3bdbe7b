"""The suite says the same wherever it runs: in folders with odd names, on several processes, under strict settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance_runs import FEATHER

TESTS = (
    "test_indexing.py::test_indexing",
    "test_layout.py::test_partitions[string]",
    "test_executors.py::test_a_process_that_used_a_table_ends",
    "test_executors.py::test_an_executor_reads_a_split",
    "test_rounds.py::test_a_commit_is_found_by_its_id[batch]",
    "test_rounds.py::test_a_replay_writes_nothing",
    "test_serializer.py::test_garbage_is_refused[{]",
    "test_source.py::test_a_filter_loses_no_row_and_adds_none[quoted]",
    "test_source.py::test_filters_on_nan_infinity_and_zeros[f < 1.0]",
)
STRICT = """
[pytest]
addopts = --strict-markers --strict-config -W error -p no:cacheprovider
xfail_strict = true
empty_parameter_set_mark = fail_at_collect
python_files = check_*.py
python_functions = check_*
filterwarnings = error
"""
# An author's own conftest.py: fixtures with the names of the suite's, other names of parameters, and another order in
# each module.
CONFTEST = """
import pytest

@pytest.fixture
def table():
    raise AssertionError("the author's own table")

lake = plugin = harness = table

def pytest_make_parametrize_id(val, argname):
    return f"{argname}={val!r}"[:50]

def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (str(item.path), item.name))
"""
WAYS = {
    "plainly": ("work", "", ()),
    "strictly, by name, in an odd folder": ("with blanks, C:\\back 100% #ünï [x]", STRICT, ("-p", "conftest")),
    "on two processes": ("two", STRICT, ("-n", "2", "--dist", "load")),
    "on two processes by scope": ("scope 2", "", ("-n", "2", "--dist", "loadscope")),
}

LATER = ("plainly", "on two processes", "on two processes by scope")
"""Other tests run the suite plainly, and by file on several processes."""


def said(folder: Path, settings: str, more: tuple[str, ...]) -> dict[str, Any]:
    folder.mkdir()
    if settings:
        (folder / "pytest.ini").write_text(settings)
        (folder / "conftest.py").write_text(CONFTEST)
    chosen = [f"--lake-test={test}" for test in TESTS]
    command = [sys.executable, "-m", "pytest", "--pyargs", "laketier_conformance", "--lake-format=feather", *chosen]
    command += ["--lake-report=the report.json", "--lake-lanes=bare", f"--basetemp={folder / 'temp'}", *more]
    command += ["-p", "no:hypothesispytest"]  # half a second to say that there is nothing to say
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(FEATHER)])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert (folder / "the report.json").exists(), done.stdout + done.stderr
    report: dict[str, Any] = json.loads((folder / "the report.json").read_text(encoding="utf-8"))
    return report


@pytest.mark.parametrize("way", [pytest.param(way, marks=[pytest.mark.deep] if way in LATER else []) for way in WAYS])
def test_the_same_names_and_the_same_verdict(way: str, tmp_path: Path) -> None:
    folder, settings, more = WAYS[way]
    report = said(tmp_path / folder, settings, more)
    outcomes = {name: result["outcome"] for name, result in report["results"].items()}
    expected = dict.fromkeys(TESTS, "passed") | dict.fromkeys(TESTS[:2], "refused")
    assert outcomes == expected, [result.get("detail") for result in report["results"].values()]
    assert report["verdict"] == "partial", "the rest was left out"
    assert not [line for line in report["why"] if not line.startswith("not run: ")]
