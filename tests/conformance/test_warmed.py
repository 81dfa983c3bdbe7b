"""A run of pytest in a fork is what it is in an interpreter that was started for it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import warmed

TEST = """
import json, os, sys, threading
from pathlib import Path
import atexit
import beside

def test_told():
    atexit.register(Path("ended").touch)
    told = {
        "cwd": os.getcwd(), "path": sys.path, "variables": dict(os.environ), "threads": threading.active_count(),
        "beside": beside.__file__,
    }
    Path("told.json").write_text(json.dumps(told))
    assert os.environ["ASKED"] == "yes", "the words of a failure"
"""


def run(folder: Path, **variables: str) -> tuple[int, str, dict[str, object]]:
    """The exit code, what was said, and what the test told."""
    (folder / "elsewhere").mkdir(parents=True)
    (folder / "elsewhere/beside.py").touch()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(TEST)
    environment = {**os.environ, "PYTHONPATH": str(folder / "elsewhere"), **variables}
    code = warmed.run(["-q", "-p", "no:cacheprovider", "test_it.py"], folder, environment, folder / "said")
    return code, (folder / "said").read_text(), json.loads((folder / "told.json").read_text())


def test_a_fork_is_as_an_interpreter_of_its_own(tmp_path: Path) -> None:
    # PYTHON… is read as an interpreter starts, so this one is no fork.
    fresh = run(tmp_path / "fresh", ASKED="yes", PYTHONHASHSEED="0")
    forked = run(tmp_path / "forked", ASKED="yes")
    assert (fresh[0], forked[0]) == (0, 0), (fresh[1], forked[1])
    for folder, (_, _, told) in ((tmp_path / "fresh", fresh), (tmp_path / "forked", forked)):
        assert told["cwd"] == str(folder)
        assert told["beside"] == str(folder / "elsewhere/beside.py")
        assert told["threads"] == 1
        assert (folder / "ended").exists(), "it ended as an interpreter does"
    here = [str(each).replace("fresh", "forked") for each in fresh[2]["path"]]  # type: ignore[attr-defined]
    assert forked[2]["path"] == here
    there = dict(fresh[2]["variables"])  # type: ignore[call-overload]
    assert there.pop("PYTHONHASHSEED") == "0"
    assert {name: str(each).replace("fresh", "forked") for name, each in there.items()} == forked[2]["variables"]


def test_a_failure_and_the_run_after_it(tmp_path: Path) -> None:
    code, said, _ = run(tmp_path / "failed", ASKED="no")
    assert (code, "the words of a failure" in said) == (1, True), said
    assert run(tmp_path / "next", ASKED="yes")[0] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="no process is forked here")
def test_a_process_that_ended_is_told_and_made_anew(tmp_path: Path) -> None:
    run(tmp_path / "first", ASKED="yes")
    process = warmed._started(warmed._key())._process
    process.kill()
    with pytest.raises((json.JSONDecodeError, BrokenPipeError)):
        run(tmp_path / "second", ASKED="yes")
    assert run(tmp_path / "third", ASKED="yes")[0] == 0
