"""Whatever lies in the folder that an author stands in: all processes of the suite import what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent
TEST = "test_kills.py::test_killed_in_the_protocol[publish.before]"
WAYS = {
    "laketier": ["laketier", "conformance", "feather", "--test", TEST, "--", "-q"],
    "pytest": ["pytest", "-q", "--pyargs", "laketier_conformance", "--lake-format=feather", f"--lake-test={TEST}"],
}


@pytest.mark.parametrize("way", ["laketier", pytest.param("pytest", marks=pytest.mark.deep)])
def test_modules_of_the_folder_hide_none(way: str, tmp_path: Path) -> None:
    for name in ("secrets.py", "feather_lake.py"):
        (tmp_path / name).write_text("raise RuntimeError('of the folder')")
    program, *words = WAYS[way]
    done = subprocess.run(
        [str(PROGRAMS / program), *words, "-p", "no:cacheprovider", "-p", "no:hypothesispytest"],
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
