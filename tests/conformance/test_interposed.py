"""Effects of a process are seen and decided, whoever has them: its threads, what it starts, libraries of others."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from laketier_conformance.interposed import Effect, Supervisor, why_not
from laketier_conformance.interposed.supervisor import KILL

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"effects can't be seen here: {why_not()}")

BEFORE = (
    "import os, socket, sqlite3, subprocess, sys, threading\n"
    "from laketier_conformance.interposed.supervisor import be_supervised\n"
    "be_supervised(sys.argv[1])\n"
)

Decide = Callable[[Effect], int]


def supervised(folder: Path, code: str, decide: Decide) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as short, Supervisor(decide, Path(short, "s")) as by:
        command = [sys.executable, "-c", BEFORE + code, str(by.path)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def seen_of(folder: Path, code: str) -> list[str]:
    seen: list[Effect] = []

    def decide(effect: Effect) -> int:
        seen.append(effect)
        return 0

    done = supervised(folder, code, decide)
    assert done.returncode == 0, done.stderr
    return [effect.below(os.path.realpath(folder)) for effect in seen]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("os.mkdir('a')", ["mkdir a"]),
        (
            "f = open('a', 'wb'); f.write(b'x'); f.flush(); os.fsync(f.fileno()); f.close(); os.replace('a', 'b')",
            ["openat a", "write a", "fsync a", "rename a -> b"],
        ),
        ("open('a', 'w').close(); os.link('a', 'b'); os.unlink('a')", ["openat a", "link a -> b", "unlink a"]),
        ("d = os.open('.', os.O_RDONLY); os.mkdir('a', dir_fd=d)", ["mkdirat a"]),
        ("threading.Thread(target=os.mkdir, args=['a']).start()", ["mkdir a"]),
        ("subprocess.run(['mkdir', 'a'], check=True)", ["mkdir a"]),
        ("a, b = socket.socketpair(); a.send(b'x'); b.recv(1)", ["sendto socket"]),
        ("os.mkdir('naïve \\udcff')", ["mkdir naïve \udcff"]),
        ("open('there').close(); open('there', 'a').close(); print('x'); os.stat('.')", []),
    ],
)
def test_what_is_seen(tmp_path: Path, code: str, expected: list[str]) -> None:
    (tmp_path / "there").touch()
    assert seen_of(tmp_path, code) == expected


def test_a_database_is_seen(tmp_path: Path) -> None:
    seen = seen_of(tmp_path, "c = sqlite3.connect('q.db'); c.execute('create table t (a)'); c.commit()")
    assert seen[0] == "openat q.db"
    assert seen.index("fdatasync q.db-journal") < seen.index("pwrite64 q.db") < seen.index("unlink q.db-journal")


def test_an_effect_fails(tmp_path: Path) -> None:
    done = supervised(tmp_path, "os.mkdir('a')", lambda _: errno.ENOSPC)
    assert "No space left" in done.stderr
    assert not (tmp_path / "a").exists()


def test_a_process_is_killed_before_an_effect(tmp_path: Path) -> None:
    done = supervised(
        tmp_path, "os.mkdir('a'); os.mkdir('b')", lambda effect: KILL if effect.on[0].endswith("b") else 0
    )
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_of_the_supervisor_is_no_silence(tmp_path: Path) -> None:
    def decide(_: Effect) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        supervised(tmp_path, "os.mkdir('a')", decide)
