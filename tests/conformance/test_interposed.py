"""Effects of a process are seen and decided, whoever has them: its threads, what it starts, libraries of others."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from laketier_conformance import test_operations, test_power
from laketier_conformance.children import Child
from laketier_conformance.interposed import Effect, Supervisor, why_not
from laketier_conformance.interposed.deciding import Run
from laketier_conformance.interposed.effects import is_nowhere
from laketier_conformance.interposed.locks import OwnLocks
from laketier_conformance.interposed.mounts import ReadOnly, paths_in
from laketier_conformance.interposed.runs import TooManySteps
from laketier_conformance.interposed.sight import Sight
from laketier_conformance.interposed.supervisor import HALVE, KILL, LOSE, RESET, TWICE
from laketier_conformance.lake import Lake

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"effects can't be seen here: {why_not()}")

BEFORE = (
    "import os, socket, sqlite3, subprocess, sys, threading\n"
    "from laketier_conformance.interposed.supervisor import be_supervised\n"
    "be_supervised(sys.argv[1])\n"
)

# As libraries of Rust and Go open files, with flags that are in memory: to make one, and to read it.
OPENED = (
    "import ctypes\n"
    "for flags in (os.O_CREAT | os.O_WRONLY, 0):\n"
    "    how = (ctypes.c_uint64 * 3)(flags, 0o600 if flags else 0)\n"
    "    assert ctypes.CDLL(None).syscall(437, -100, b'a', how, 24) > 0\n"
)

Decide = Callable[[Effect], int]


def supervised(folder: Path, code: str, decide: Decide) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as short, Supervisor(decide, Path(short, "s")) as by:
        command = [sys.executable, "-c", BEFORE + code, str(by.path)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_long_folder_and_few_descriptors_are_no_reason(tmp_path: Path) -> None:
    """The names of sockets are short, and those of folders for temporary files need not be."""
    (long := tmp_path / ("x" * 120)).mkdir()
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
    seen: list[str] = []

    def decide(effect: Effect) -> int:
        seen.append(effect.call)
        return 0

    with Supervisor(decide, long / "s") as by:
        command = [sys.executable, "-c", f"{few}{BEFORE}os.mkdir('a')", str(by.path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (seen, done.stderr) == (["mkdir"], "")


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
        ("a, b = socket.socketpair(); a.send(b'x'); b.recv(1)", []),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))", ["sendto udp of no peer"]),
        (
            "import mmap; f = open('there', 'r+b'); f.truncate(9); m = mmap.mmap(f.fileno(), 9); m[0] = 1",
            ["ftruncate there", "mmap there"],
        ),
        (
            "import mmap; f = open('a', 'w+b'); f.write(b'x'); f.flush(); mmap.mmap(f.fileno(), 1, prot=1)",
            ["openat a", "write a"],
        ),
        (OPENED, ["openat2 a"]),
        ("os.mknod('a')", ["mknodat a"]),
        ("os.mkfifo('a'); os.write(os.open('a', os.O_RDWR), b'x')", ["mknodat a", "write a"]),
        ("os.write(os.pipe()[1], b'x')", []),
        (
            "a, b = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in 'ab'); a.bind('s'); b.sendto(b'x', 's')",
            ["sendto unix of no peer"],
        ),
        # Not each file system has them: the call is seen before that turns out.
        (
            "import contextlib\nwith contextlib.suppress(OSError): os.setxattr('there', 'user.x', b'1')",
            ["setxattr there"],
        ),
        (
            "import fcntl; f = open('there', 'r+b'); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(f, 8)",
            ["flock(LOCK_EX | LOCK_NB) there", "flock(LOCK_UN) there"],
        ),
        (
            (
                "import fcntl; f = open('there', 'r+b'); fcntl.lockf(f, fcntl.LOCK_SH); fcntl.fcntl(f, fcntl.F_GETFL)\n"
                "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.lockf(f, fcntl.LOCK_UN)"
            ),
            ["fcntl(F_SETLKW, F_RDLCK) there", "fcntl(F_SETLK, F_WRLCK) there", "fcntl(F_SETLKW, F_UNLCK) there"],
        ),
        # Whether the file system shares blocks or not.
        (
            (
                "import contextlib, fcntl; f = open('there', 'r+b')\n"
                "for how in (0x40049409, 0x4020940D, 0x5401):\n"
                "    with contextlib.suppress(OSError): fcntl.ioctl(f, how, bytes(64))"
            ),
            ["ioctl there", "ioctl there"],
        ),
        (
            (
                "import ctypes; c = ctypes.CDLL(None); c.shmget(7, 4096, 0); c.msgget(7, 0)\n"
                "c.syscall(206 if os.uname().machine == 'x86_64' else 0, 1, ctypes.byref(ctypes.c_ulong()))"
            ),
            ["shmget /", "msgget /", "io_setup /"],
        ),
        ("os.mkdir('naïve \\udcff')", ["mkdir naïve \udcff"]),
        ("open('there').close(); open('there', 'a').close(); print('x'); os.stat('.')", []),
    ],
)
def test_what_is_seen(tmp_path: Path, code: str, expected: list[str]) -> None:
    (tmp_path / "there").touch()
    assert seen_of(tmp_path, code) == expected


def test_a_file_without_a_name_is_seen(tmp_path: Path) -> None:
    """It is written, and linked from below /proc."""
    code = (
        "import ctypes; d = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(d, b'x')\n"
        "sys.exit(ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % d, -100, b'a', 0x400))"
    )
    written, linked = seen_of(tmp_path, code)
    assert written.startswith("write #")
    assert linked.endswith("-> a")


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


@contextmanager
def upper(works: float = 0.0) -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers each line in upper case, and what it was sent. ``works``: so many seconds of a processor
    for each line."""
    got: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                got.append(line)
                until = time.thread_time() + works
                while time.thread_time() < until:
                    pass
                with suppress(OSError):
                    self.wfile.write(line.upper())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], got
        finally:
            server.shutdown()
            thread.join()


ASKS = (
    "s = socket.create_connection(('127.0.0.1', {port}))\n"
    "for part in [b'first\\n', b'sec', b'ond\\n', b'third\\n']:\n"
    "    {send}\n"
    "    answer = s.recv(99) if part[-1:] == b'\\n' else b''\n"
    "    os.write(1, answer + b'|')\n"
    "    if part[-1:] == b'\\n' and not answer: sys.exit('no answer')\n"
)
SENDS = [
    "s.send(part)",
    "os.write(s.fileno(), part)",
    "s.sendmsg([part[:1], part[1:]])",
    "os.writev(s.fileno(), [part])",
]


@pytest.mark.parametrize("send", SENDS)
def test_a_send_is_told_with_its_peer(tmp_path: Path, send: str) -> None:
    """The parts of one request are alike; the next request is another one."""
    seen: list[Effect] = []

    def decide(effect: Effect) -> int:
        seen.append(effect)
        return 0

    with upper() as (port, _):
        done = supervised(tmp_path, ASKS.format(port=port, send=send), decide)
        assert done.stdout == "FIRST\n||SECOND\n|THIRD\n|", done.stderr
        assert {effect.on for effect in seen} == {(f"tcp 127.0.0.1:{port}",)}
    assert [effect == before for before, effect in pairwise(seen)] == [False, True, False]


def test_requests_on_connections_of_their_own_are_two(tmp_path: Path) -> None:
    """Nothing came back on either of them before, as with most clients of HTTP."""
    seen: list[Effect] = []

    def decide(effect: Effect) -> int:
        seen.append(effect)
        return 0

    code = "for part in [b'first\\n', b'second\\n']:\n    s = socket.create_connection(('127.0.0.1', {port}))\n"
    with upper() as (port, _):
        done = supervised(tmp_path, f"{code}    s.send(part); s.recv(99); s.close()\n".format(port=port), decide)
    assert done.returncode == 0, done.stderr
    assert [effect.received for effect in seen] == [0, 0]
    assert len(set(seen)) == 2


@pytest.mark.parametrize("send", SENDS)
def test_an_answer_is_lost(tmp_path: Path, send: str) -> None:
    """The request lands, in whatever parts; the connection is at its end."""
    seen: list[Effect] = []

    def decide(effect: Effect) -> int:
        seen.append(effect)
        return LOSE if effect.received == len(b"first\n") else 0

    with upper() as (port, got):
        done = supervised(tmp_path, ASKS.format(port=port, send=send), decide)
    assert (done.returncode, done.stdout) == (1, "FIRST\n|||"), done.stderr
    assert "no answer" in done.stderr
    assert got == [b"first\n", b"second\n"]


def test_an_answer_that_is_worked_for_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than one is waited for, as on a machine with too much to do."""
    monkeypatch.setattr("laketier_conformance.interposed.sockets._ANSWER_SECONDS", 0.01)
    with upper(works=0.5) as (port, got):
        code = ASKS.format(port=port, send=SENDS[0])
        done = supervised(tmp_path, code, lambda effect: LOSE if effect.received == len(b"first\n") else 0)
    assert (done.returncode, done.stdout) == (1, "FIRST\n|||"), done.stderr
    assert got == [b"first\n", b"second\n"]


def test_a_connection_is_reset_before_a_send(tmp_path: Path) -> None:
    with upper() as (port, got):
        code = ASKS.format(port=port, send=SENDS[0])
        done = supervised(tmp_path, code, lambda effect: RESET if effect.received else 0)
    assert "ConnectionResetError" in done.stderr
    assert got == [b"first\n"]


@pytest.mark.parametrize("write", ["os.write(d, b'abcd')", "os.writev(d, [b'a', b'bcd'])", "os.pwrite(d, b'abcd', 2)"])
def test_a_write_is_short(tmp_path: Path, write: str) -> None:
    code = f"d = os.open('a', os.O_WRONLY | os.O_CREAT); print({write}, os.lseek(d, 0, os.SEEK_CUR))"
    done = supervised(tmp_path, code, lambda effect: HALVE if "write" in effect.call else 0)
    at_an_offset = "pwrite" in write
    assert done.stdout == ("2 0\n" if at_an_offset else "2 2\n"), done.stderr
    assert (tmp_path / "a").read_bytes() == (b"\0\0ab" if at_an_offset else b"ab")


@pytest.mark.parametrize(
    ("code", "error", "left"),
    [
        ("os.link('there', 'b')", "FileExistsError", {"there", "b", "folder"}),
        ("os.rename('there', 'b')", "FileNotFoundError", {"b", "folder"}),
        ("os.unlink('there')", "FileNotFoundError", {"folder"}),
        ("os.mkdir('b')", "FileExistsError", {"there", "b", "folder"}),
        ("os.rmdir('folder')", "FileNotFoundError", {"there"}),
    ],
)
def test_a_change_of_a_name_finds_itself_done(tmp_path: Path, code: str, error: str, left: set[str]) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "folder").mkdir()
    done = supervised(tmp_path, code, lambda _: TWICE)
    assert error in done.stderr
    assert set(os.listdir(tmp_path)) == left


@pytest.mark.parametrize("memory", [None, Path("/dev/shm")])
def test_what_began_before_is_told(memory: Path | None, tmp_path: Path) -> None:
    """Another process, and memory mapped to a file, also to one in memory: nobody sees what they do."""
    made = tempfile.TemporaryDirectory(dir=memory if memory is not None and memory.is_dir() else tmp_path)
    with made as folder:
        _tells_what_began_before(Path(folder))


def _tells_what_began_before(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"x")
    code = (
        "import mmap, subprocess, sys\n"
        "started = subprocess.Popen(['sleep', '60'])\n"
        "file = open('there', 'r+b'); mapped = mmap.mmap(file.fileno(), 1)\n"
    ) + BEFORE
    with tempfile.TemporaryDirectory() as short, Supervisor(lambda _: 0, Path(short, "s")) as by:
        command = [sys.executable, "-c", f"{code}started.kill(); started.wait()", str(by.path)]
        subprocess.run(command, cwd=tmp_path, check=True)
    assert by.before == [
        "the process 'sleep 60': started before effects were seen",
        f"writes to the memory mapped to {os.path.realpath(tmp_path)}/there before effects were seen",
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/dev/null", True),
        ("/proc/1/mem", True),
        ("/dev/shm/sem.x", True),
        ("/dev/shm/lake/t", False),
        ("/lake", False),
    ],
)
def test_a_folder_in_memory_is_a_folder(path: str, expected: bool) -> None:
    assert is_nowhere(path) is expected


@pytest.mark.parametrize("stays", [True, False])
def test_memory_that_processes_share_is_told_where_it_stays(stays: bool, tmp_path: Path) -> None:
    """It is no disk, so nothing of it can be cut off. What a library makes for itself and takes away is its own."""
    if not os.path.isdir("/dev/shm"):
        pytest.skip("the system has no /dev/shm")
    name = f"/dev/shm/laketier-{os.getpid()}-{secrets.token_hex(4)}"
    sight = Sight(tmp_path)
    code = f"open({name!r}, 'w').write('x'); {'' if stays else f'os.unlink({name!r})'}"
    try:
        supervised(tmp_path, code, lambda effect: 0 * sight.take(effect))
        for do in ("make_again", "replay"):
            sight.ended(do, [], [])
    finally:
        Path(name).unlink(missing_ok=True)
    told = ["memory that processes share by the name /dev/shm/laketier-*-*: its effects are none of a disk"]
    assert [*sight.unseen] == (told if stays else [])
    assert not sight.kinds


def void_of(folder: Path, code: str) -> list[str]:
    """The effects before which a lock was found lost."""
    own, found = OwnLocks(), []

    def decide(effect: Effect) -> int:
        if effect.is_lock:
            own.take(effect)
        elif own.is_lost():
            found.append(effect.call)
        return 0

    done = supervised(folder, f"import fcntl; f = open('there', 'w'); {code}", decide)
    assert done.returncode == 0, done.stderr
    return found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("fcntl.lockf(f, 2); os.mkdir('a'); open('there').close(); os.mkdir('b'); os.mkdir('c')", ["mkdir"]),
        ("fcntl.lockf(f, 2); os.mkdir('a'); fcntl.lockf(f, 8); open('there').close(); os.mkdir('b')", []),
        ("fcntl.lockf(f, 2); os.mkdir('a'); f.close(); os.mkdir('b')", []),
        ("fcntl.flock(f, 2); os.mkdir('a'); open('there').close(); os.mkdir('b')", []),
        ("os.mkdir('a'); open('there').close(); os.mkdir('b')", []),
    ],
)
def test_a_lock_is_lost_by_a_descriptor_that_is_closed(tmp_path: Path, code: str, expected: list[str]) -> None:
    """One of POSIX alone, and where its process neither gave it back nor knows."""
    assert void_of(tmp_path, code) == expected


def test_a_lock_is_refused(tmp_path: Path) -> None:
    code = "import fcntl; fcntl.flock(open('there', 'w'), fcntl.LOCK_EX)"
    done = supervised(tmp_path, code, lambda effect: errno.ENOLCK if effect.is_lock else 0)
    assert "No locks available" in done.stderr


def test_a_task_of_too_many_steps_is_not_shown() -> None:
    """A database that changes its pages in their places is no loop: it writes each page down first."""

    class Cuts:
        def ask(self, *_: object, **__: object) -> None:
            raise TooManySteps("it was killed")

    told: list[str] = []
    test_power.test_each_file_of_a_large_task_survives(Cuts(), None, lambda what, _: told.append(what))  # type: ignore[arg-type]
    assert told == ["power cuts after a large task"]


@pytest.mark.parametrize("decided", [KILL, LOSE, TWICE, HALVE, errno.EIO])
def test_a_request_that_had_nothing_left_to_do_is_told(decided: int) -> None:
    run = Run("keep", at=1, steps=[], answer={"done": "expire"})
    assert test_operations.happened_to(run, decided)


def test_a_mount_tells_what_writers_left_from_what_a_reader_makes(tmp_path: Path) -> None:
    """A link that leads nowhere has a name like any file, and no size."""
    folder, lake = tmp_path / "w", Lake("localfile", str(tmp_path / "w"), {})
    folder.mkdir()
    (folder / "link").symlink_to("nowhere")
    (folder / "empty").touch()
    mount = ReadOnly(cast("Child", None), lake, folder, paths_in(folder))
    (folder / "later").touch()
    for name, makes in (("link", False), ("empty", False), ("later", True), ("none", True)):
        mount.refused = None
        assert mount.decide(Effect("openat", (f"{folder}/{name}",))) == errno.EROFS
        assert mount.refused is not None
        assert mount.refused[1] is makes, name
    mount.refused = None
    assert mount.decide(Effect("mkdir", (f"{folder}/empty",))) == 0
    assert mount.refused is None
