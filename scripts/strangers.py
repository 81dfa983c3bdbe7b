"""What the author of a format does first, with a wheel of laketier, an empty environment and pip alone.

    python scripts/strangers.py              all of it
    python scripts/strangers.py ways         the suite in odd folders, under strict settings, beside others' plugins
    python scripts/strangers.py again        the command that a failure ends with, taken by a shell that knows nothing
    python scripts/strangers.py manifest     the commands that the workflow and the README name of what `laketier
                                             new-plugin --kind manifest` makes; so table-library, database and source

The ways are one selection of the suite on one format: the names of the tests and what became of each have to be the
same in all of them. Ends with 1 if anything is not. It needs the package index. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bootstrap import ROOT
from strangers_again import again_as_printed
from strangers_runs import call, ran, told
from strangers_walk import ODD, SOURCE, walked

FEATHER = ROOT / "tests" / "third_party" / "feather"
KINDS = ("manifest", "table-library", "database", SOURCE)
WAYS, AGAIN, PLAINLY = "ways", "again", "plainly"
PARTS = (WAYS, AGAIN, *KINDS)
OTHERS = (
    "pytest-asyncio",
    "pytest-benchmark",
    "pytest-cov",
    "pytest-mock",
    "pytest-random-order",
    "pytest-randomly",
    "pytest-rerunfailures",
    "pytest-socket",
    "pytest-split",
    "pytest-sugar",
    "pytest-timeout",
)
"""Plugins of pytest that authors have. All are installed, and so are there in each of the ways."""
TESTS = (
    "test_executors.py",
    "test_indexing.py",
    "test_isolation.py",
    "test_kills.py",
    "test_layout.py::test_partitions[string]",
    "test_operations.py::test_an_operation_is_cut_off[alter]",
    "test_process.py",
    "test_rounds.py",
    "test_secrets.py",
    "test_serializer.py",
    "test_source.py::test_a_filter_loses_no_row_and_adds_none[quoted]",
    "test_source.py::test_filters_on_nan_infinity_and_zeros[f < 1.0]",
)
OF_SOURCES = ("test_offsets.py", "test_bad_records.py", "test_same_rows.py::test_two_processes_read_at_once")
STRICT = """[pytest]
addopts = --strict-markers --strict-config -W error -p no:cacheprovider --import-mode=importlib
xfail_strict = true
filterwarnings = error
asyncio_default_fixture_loop_scope = function
"""
OTHER_NAMES = """[pytest]
python_files = check_*.py
python_classes = *
python_functions = check_*
norecursedirs = *
addopts = --doctest-modules -m "not slow"
"""
LOUD = """[pytest]
log_cli = true
log_level = DEBUG
console_output_style = times
tmp_path_retention_policy = none
tmp_path_retention_count = 0
asyncio_mode = auto
"""


@dataclass(frozen=True)
class Way:
    """How the suite is run: the folder's name, its configuration of pytest, more words, and the environment."""

    folder: str
    settings: str = ""
    words: Sequence[str] = ("-p", "no:randomly")
    environment: Mapping[str, str] = field(default_factory=dict)
    python: Sequence[str] = ()


RUNS = {
    PLAINLY: Way("work"),
    "shuffled, on two processes, strictly, in an odd folder": Way(ODD, STRICT, ("-n", "2")),
    "shuffled in another way, on two processes": Way("order", "", ("-p", "no:randomly", "--random-order", "-n", "2")),
    "on two processes that steal work": Way("steal", "", ("-n", "2", "--dist", "worksteal")),
    "with a time limit in a thread, and warnings of development": Way(
        "limit", STRICT, ("-p", "no:randomly", "--timeout=300", "--timeout-method=thread"), python=("-X", "dev")
    ),
    "with other names for tests": Way("names", OTHER_NAMES),
    "loudly, and without folders that are kept": Way("loud", LOUD),
    "without the network, with coverage, and again if it fails": Way(
        "net", "", ("-p", "no:randomly", "--disable-socket", "--allow-unix-socket", "--cov=feather_lake", "--reruns=1")
    ),
    "in a locale of ASCII, without capture": Way(
        "ascii",
        "",
        ("-p", "no:randomly", "-s", "--assert=plain"),
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "3"},
    ),
}


def main(wanted: Sequence[str]) -> int:
    unknown = [each for each in wanted if each not in PARTS]
    if unknown:
        print(f"strangers: there is no {unknown[0]!r}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    failed = 0
    with tempfile.TemporaryDirectory(prefix="laketier-strangers-") as folder:
        here = Path(folder)
        wheel = wheel_of(here)
        for each in wanted or PARTS:
            if each in (WAYS, AGAIN):
                failed += {WAYS: in_all_ways, AGAIN: again}[each](here, wheel)
            else:
                failed += not is_conformant(here, wheel, each)
    return 1 if failed else 0


def wheel_of(here: Path) -> Path:
    call([sys.executable, "-m", "venv", here / "builds"])
    call([here / "builds" / "bin" / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", here / "dist", ROOT])
    (wheel,) = (here / "dist").glob("*.whl")
    return wheel


def empty_environment(at: Path) -> Path:
    """Made anew. Returns the folder of its programs."""
    shutil.rmtree(at, ignore_errors=True)
    call([sys.executable, "-m", "venv", at])
    return at / "bin"


def in_all_ways(here: Path, wheel: Path) -> int:
    """How many of the ways gave another answer."""
    programs = empty_environment(here / "env")
    call([programs / "pip", "install", "--quiet", f"laketier[conformance] @ {wheel.as_uri()}", FEATHER, *OTHERS])
    plain: Any = None
    other = 0
    for name, way in RUNS.items():
        began = time.monotonic()
        answer, said = suite_in(here / "ways", programs, way)
        plain = answer if name == PLAINLY else plain
        same = answer is not None and answer == plain and set(answer[0].values()) <= {"passed", "refused"}
        other += not same
        told(same, f"{len(answer[0]) if answer else 0} tests {name}", began)
        if not same:
            print(said, file=sys.stderr)
    return other


def suite_in(above: Path, programs: Path, way: Way) -> tuple[tuple[dict[str, str], str] | None, str]:
    """What became of each test, and the verdict; None where there is no report, or a test was run again. And what
    pytest said."""
    folder = above / way.folder
    folder.mkdir(parents=True)
    if way.settings:
        (folder / "pytest.ini").write_text(way.settings, encoding="utf-8")
    command = [programs / "python", *way.python, "-m", "pytest", "--pyargs", "laketier_conformance"]
    command += ["--lake-format=feather", "--lake-lanes=bare", *(f"--lake-test={test}" for test in TESTS)]
    command += ["--lake-report=the report.json", "--lake-steps=1", "--lake-seed=1", f"--basetemp={folder / 'temp'}"]
    words = [str(word) for word in (*command, *way.words)]
    environment = {**os.environ, **way.environment}
    _, said = ran(words, folder, environment)
    if re.search(r"\b[1-9]\d* rerun", said):
        return None, f"a test failed, and passed when it was run again:\n{said}"
    try:
        report = json.loads((folder / "the report.json").read_text(encoding="utf-8"))
    except OSError:
        return None, said
    return ({name: result["outcome"] for name, result in report["results"].items()}, report["verdict"]), said


def again(here: Path, wheel: Path) -> int:
    """How many commands that a failure ends with did not run, or found something else."""
    programs = empty_environment(here / "env")

    def make(above: Path, name: str, kind: str) -> Path:
        return new_plugin(above, wheel, programs, name, kind)

    return again_as_printed(here, programs, make, told)


def new_plugin(above: Path, wheel: Path, programs: Path, name: str, kind: str) -> Path:
    """As the workflow that comes with it installs it. Returns its folder."""
    call([programs / "pip", "install", "--quiet", wheel])
    call([programs / "laketier", "new-plugin", name, "--kind", kind], cwd=above)
    project = above / f"laketier-{name}"
    words = ["install", "--quiet", wheel, "-e", ".[test]"]
    call([programs / "python", "-m", "pip", *words], cwd=project)
    return project


def is_conformant(here: Path, wheel: Path, kind: str) -> bool:
    """The commands of the workflow and of the README of what is made."""
    return walked(here, wheel, empty_environment(here / "env"), kind, OF_SOURCES if kind == SOURCE else TESTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
