"""`laketier conformance` under Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CTRL_C = """
import os, signal, time, pytest

def pytest_runtest_call(item):
    os.killpg(0, signal.SIGINT)

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    time.sleep(1)  # a report may take as long as it likes
"""


def test_an_interrupted_run_writes_its_report(tmp_path: Path) -> None:
    (tmp_path / "ctrl_c.py").write_text(CTRL_C)
    report = tmp_path / "report.json"
    command = [str(Path(sys.executable).with_name("laketier")), "conformance", "feather", "--report", str(report)]
    command += ["--test", "test_serializer.py::test_a_result_travels_unchanged"]
    done = subprocess.run(
        [*command, "--", "-p", "ctrl_c", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert report.exists(), done.stdout + done.stderr
    assert (done.returncode, json.loads(report.read_text())["verdict"]) == (130, "fail")
