"""`laketier conformance` under Ctrl-C, and where its process ends in a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance_runs import FEATHER, HERE, offered

_HEARS_INT = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""No shell's trap takes back that a signal was ignored when it began."""


def asked(tmp_path: Path, plugin: str, report: str, ignored: str = "") -> subprocess.CompletedProcess[str]:
    """`laketier conformance` of one test, in a session of its own, beside a plugin of pytest with this text.
    ``ignored``: a signal that it ignores, as what a shell's script begins beside itself ignores INT. No other one is
    ignored, also where these tests are such a thing."""
    (tmp_path / "beside.py").write_text(plugin)
    command = [sys.executable, "-c", _HEARS_INT]
    command += ["sh", "-c", f"trap '' {ignored}; exec \"$@\"", "sh"] if ignored else []
    command += [str(Path(sys.executable).with_name("laketier")), "conformance", "feather", "--report", report]
    command += ["--test", "test_serializer.py::test_a_result_travels_unchanged"]
    return subprocess.run(
        [*command, "--", "-p", "beside", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        start_new_session=True,
        timeout=120,
    )


CTRL_C = """
import os, signal, time, pytest

def pytest_runtest_call(item):
    os.killpg(0, signal.SIGINT)

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    time.sleep(1)  # a report may take as long as it likes
"""


def test_an_interrupted_run_writes_its_report(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = asked(tmp_path, CTRL_C, str(report))
    assert report.exists(), done.stdout + done.stderr
    assert (done.returncode, json.loads(report.read_text())["verdict"]) == (130, "fail")


TERMINATED = """
import os, signal, time

def pytest_runtest_call(item):
    os.kill(os.getppid(), signal.SIGTERM)
    while True:  # a signal that comes just before `signal.pause` ends no pause
        time.sleep(0.05)
"""


@pytest.mark.every(2)
@pytest.mark.parametrize("ignored", ["", "INT"])
def test_who_ends_the_command_ends_its_tests(tmp_path: Path, ignored: str) -> None:
    """A CI ends the command alone."""
    report = tmp_path / "report.json"
    done = asked(tmp_path, TERMINATED, str(report), ignored)
    assert done.returncode == 143, done.stdout + done.stderr
    assert json.loads(report.read_text())["verdict"] == "fail"


SWALLOWED = """
import os, signal, time

def pytest_collection_modifyitems():
    try:
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
    except KeyboardInterrupt:
        pass  # as Python does in a callback of a library's
"""


def test_who_ends_the_command_ends_its_tests_though_a_library_hides_it(tmp_path: Path) -> None:
    """The suite went on for minutes."""
    report = tmp_path / "report.json"
    done = asked(tmp_path, SWALLOWED, str(report))
    assert done.returncode == 143, done.stdout + done.stderr
    assert json.loads(report.read_text())["verdict"] == "fail"


KILLED = """
import os, signal, time

def pytest_runtest_call(item):
    os.kill(os.getppid(), signal.SIGKILL)
    while True:
        time.sleep(0.05)

def pytest_unconfigure():
    open("ended", "w").close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_who_kills_the_command_ends_its_tests(tmp_path: Path) -> None:
    """The pipes of its output end with the last process that has them."""
    done = asked(tmp_path, KILLED, str(tmp_path / "report.json"), "INT")
    assert done.returncode == -9
    assert (tmp_path / "ended").exists()


NO_FOLDER = """
from pathlib import Path

def pytest_runtest_teardown(item):
    Path("reports").rename("gone")
"""


@pytest.mark.deep
def test_a_report_that_can_not_be_written_is_told_as_that(tmp_path: Path) -> None:
    done = asked(tmp_path, NO_FOLDER, "reports/r.json")
    assert "the report could not be written" in done.stdout, done.stderr
    assert "the process ended" not in done.stderr
    assert done.returncode == 1


def test_a_test_in_which_the_process_ends_is_told(tmp_path: Path) -> None:
    """Without xdist nobody is left to write a report."""
    test, name = "test_rounds.py::test_the_counts_are_those_of_the_files", "ends-its-process"
    path = [
        str(offered(tmp_path / "offers", {name: "ends_its_process"}, {})),
        str(HERE / "wrong_plugins"),
        str(FEATHER),
    ]
    laketier = Path(sys.executable).with_name("laketier")
    done = subprocess.run(
        [
            str(laketier),
            "conformance",
            name,
            "--test",
            test,
            "--",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert f"laketier: the process ended with 7 in {test}: a plugin never ends" in done.stderr, done.stdout
    assert f"again  {laketier} conformance {name} --test {test}\n" in done.stderr
    assert done.returncode == 1
