from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from laketier.kit import FailpointError, failpoint
from laketier.kit.failpoints import VARIABLE


def test_inert_unless_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    failpoint("any.point")
    monkeypatch.setenv(VARIABLE, "other.point=error")
    failpoint("any.point")
    monkeypatch.setenv(VARIABLE, "any.point=error")
    with pytest.raises(FailpointError):
        failpoint("any.point")


def test_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "one=error; two=error")
    for name in ("one", "two", "one"):
        with pytest.raises(FailpointError, match=f"failpoint {name}"):
            failpoint(name)


def test_the_nth_hit_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nth=error@3")
    failpoint("nth")
    failpoint("nth")
    with pytest.raises(FailpointError):
        failpoint("nth")
    failpoint("nth")


def test_kill() -> None:
    code = "from laketier.kit import failpoint; failpoint('a'); failpoint('b'); print('alive')"
    environment = {**os.environ, VARIABLE: "b=kill"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b""


def test_pause_waits_until_the_file_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flag = tmp_path / f"paused-{os.getpid()}"
    monkeypatch.setenv(VARIABLE, f"slow=pause({tmp_path}/paused-%p)")
    passed = threading.Event()
    thread = threading.Thread(target=lambda: (failpoint("slow"), passed.set()))
    thread.start()
    while not flag.exists():
        assert not passed.is_set()
    assert not passed.is_set()
    flag.unlink()
    thread.join(60)
    assert passed.is_set()


@pytest.mark.parametrize("text", ["a", "a=explode", "a=pause", "a=kill(x)", "a=kill@0", "=kill@x"])
def test_a_mistake_in_the_variable_is_not_ignored(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=VARIABLE):
        failpoint("a")
