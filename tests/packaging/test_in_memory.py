"""The folders of `make test` lie in memory where there is room, and none stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import in_memory

TELLS = "import os, sys, tempfile; print(tempfile.mkdtemp()); sys.exit(int(sys.argv[1]))"


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(in_memory.ON_DISK, raising=False)


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_has_its_folders_there_and_they_go(tmp_path: Path, capfd, code: int) -> None:  # type: ignore[no-untyped-def]
    usual = signal.getsignal(signal.SIGINT)
    assert in_memory.run([sys.executable, "-c", TELLS, str(code)], tmp_path, 0) == code
    assert signal.getsignal(signal.SIGINT) is usual, "who runs these tests can end them"
    told = capfd.readouterr().out
    assert told.startswith(f"{tmp_path}/lt-")
    assert not list(tmp_path.iterdir())
    assert (in_memory.ON_DISK in told) == bool(code)


def test_without_room_it_runs_on_the_disk_and_says_why(tmp_path: Path, capfd) -> None:  # type: ignore[no-untyped-def]
    assert in_memory.run([sys.executable, "-c", TELLS, "3"], tmp_path, 1 << 62) == 3
    why, where = capfd.readouterr().out.splitlines()
    assert "are needed" in why
    assert not where.startswith(str(tmp_path))


def test_who_asks_for_the_disk_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_memory.why_not(tmp_path, 0) is None
    monkeypatch.setenv(in_memory.ON_DISK, "1")
    assert in_memory.why_not(tmp_path, 0) == f"{in_memory.ON_DISK} is set"


def test_a_system_without_such_a_folder_has_the_disk(tmp_path: Path) -> None:
    assert "can't be written" in str(in_memory.why_not(tmp_path / "none", 0))


def test_what_a_killed_run_left_goes_and_what_is_live_or_of_others_stays(tmp_path: Path) -> None:
    others = tmp_path / "lt-others"
    others.mkdir()
    command = [sys.executable, "-c", "import os; print(os.environ['TMPDIR'], flush=True); input()"]
    code = f"import in_memory, pathlib; in_memory.run({command!r}, pathlib.Path({str(tmp_path)!r}), 0)"
    environment = {**os.environ, "PYTHONPATH": str(Path(in_memory.__file__).parent)}
    run = [sys.executable, "-c", code]
    with subprocess.Popen(run, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        folder = Path(running.stdout.readline().strip())
        in_memory.forget_the_ended(tmp_path)
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o7777 == 0o1777, "other users enter it, as they enter /tmp"
        running.kill()
    in_memory.forget_the_ended(tmp_path)
    assert list(tmp_path.iterdir()) == [others]


def test_a_container_may_take_less_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(in_memory, "_LIMITS", (str(tmp_path / "none"), str(limit)))
    limit.write_text("max\n")
    assert in_memory.why_not(tmp_path, 1 << 20) is None
    limit.write_text(f"{1 << 19}\n")
    assert "0 MiB are free" in str(in_memory.why_not(tmp_path, 1 << 20))
