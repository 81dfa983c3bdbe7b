"""The other end of `laketier_conformance.child`."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from laketier_conformance.expect import HarnessFailed
from laketier_conformance.forks import Forked, Forks
from laketier_conformance.heard import asking_a_harness, heard
from laketier_conformance.lake import Lake

PATIENCE_SECONDS = 120.0
_AGAIN = 9
"""So often a process is waited for once more that worked meanwhile: a machine with too much to do is slow."""
_WORKS_SECONDS = 1.0
"""Of a processor, in that time. One that waits for what never comes, such as a lock, needs none."""
STILL_SECONDS = 1.0
_LITTLE_STILL_SECONDS = 0.1
_STILL_WORKS_SECONDS = 0.03
"""Of a processor, in that time: one that polls for a lock needs less, one that works for its answer more."""
_STILL_LOOKS = 10
_ROUND_SECONDS = 0.5
"""Of a processor, in all, however slow it is: one that asks for a lock again and again works, too, and gives up after
some time. A round needs less."""
_SERVED = "laketier_conformance.child"


class Child:
    """One other process, for one format. Speaks when asked."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked) -> None:
        self._process = process
        self._buffer = b""

    @classmethod
    def fresh(cls, format: str, *more: str, environment: Mapping[str, str] | None = None) -> Child:
        """An interpreter of its own, that has imported nothing but the plugin. ``more``: options of Python's."""
        command, pipe = [sys.executable, *more, "-m", _SERVED, format], subprocess.PIPE
        return cls(subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=environment))

    def ask(self, lake: Lake, do: str, **request: Any) -> dict[str, Any]:
        """Ask and wait for the answer."""
        self.begin(lake, do, **request)
        return self.answer()

    def begin(self, lake: Lake, do: str, **request: Any) -> None:
        """Ask without waiting."""
        self.send({"do": do, "warehouse": lake.location, "options": dict(lake.options), **request})

    def send(self, document: Mapping[str, Any]) -> None:
        """Ask for what a document says, without waiting."""
        self._write(json.dumps(document))

    def go(self) -> None:
        """Let a child that said it was ready go on."""
        self._write("go")

    def answer(self) -> dict[str, Any]:
        """The next answer. Raises `ChildDied` when it ended instead."""
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            self._wait(self._process.stdout)
            data = self._process.stdout.read(65536)
            if not data:
                raise ChildDied(self._process.wait())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _wait(self, pipe: IO[bytes]) -> None:
        """Until it says something, or ends. Raises `TimeoutError` once it only waits, or worked for too long."""
        begun = spent = _processor_seconds(self._process.pid)
        for number in range(1, _AGAIN + 2):
            heard()  # it has limits of its own
            if _says_more(pipe, PATIENCE_SECONDS):
                return
            before, spent = spent, _processor_seconds(self._process.pid)
            if spent - before < _WORKS_SECONDS or number > _AGAIN:
                raise TimeoutError(
                    f"the other process said nothing for {number * PATIENCE_SECONDS:.0f} seconds, and worked for "
                    f"{spent - begun:.0f} of them: {'it waits' if spent - before < _WORKS_SECONDS else 'it goes on'}"
                )

    def answers_within(self, seconds: float) -> bool:
        """Whether it has said something, or ended."""
        assert self._process.stdout is not None
        return bool(self._buffer or _says_more(self._process.stdout, seconds))

    def answers_or_waits(self, seconds: float = STILL_SECONDS) -> bool:
        """Whether it has said something, or ended. It is waited for while it works, which takes long on a slow machine;
        one that does nothing for so many seconds waits for a lock, which may be that of who asks."""
        begun = spent = _processor_seconds(self._process.pid)
        for _ in range(_STILL_LOOKS):
            if self.answers_within(seconds):
                return True
            before, spent = spent, _processor_seconds(self._process.pid)
            is_still = spent - before < _STILL_WORKS_SECONDS and not _wants_a_processor(self._process.pid)
            if is_still or spent - begun > _ROUND_SECONDS:
                break
        return False

    def ends_within(self, seconds: float) -> int | None:
        """Ask nothing more of an interpreter of its own, and wait until it has ended. What it ended with, as in
        `subprocess.Popen.returncode`; None if it goes on."""
        assert isinstance(self._process, subprocess.Popen)
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """With SIGKILL, while somebody waits for its answer."""
        self._process.kill()

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            raise ChildDied(self._process.wait()) from None


class Patience:
    """With those that come to a table, one after the other, while another process is stopped on its way."""

    def __init__(self) -> None:
        self._kept = 0

    def came(self, child: Child) -> bool:
        """`Child.answers_or_waits`. Once a lock kept two from coming, it keeps others: with a format that has locks
        each step would take a second for nothing."""
        came = child.answers_or_waits(STILL_SECONDS if self._kept < 2 else _LITTLE_STILL_SECONDS)
        self._kept += not came
        return came


def _says_more(pipe: IO[bytes], seconds: float) -> bool:
    """Whether there is something to read, or the other end is closed. `select.select` takes no descriptor from 1024 on,
    and a process that watches a disk has that many."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _processor_seconds(pid: int) -> float:
    """What a process has used of processors, with those of its children that ended; 0 where nothing tells."""
    try:
        # Behind the program's name, which may have any letters: ended and running, of its own and of its children.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def _wants_a_processor(pid: int) -> bool:
    """Whether a process runs, would if others let it, or waits for a disk; False where nothing tells."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in ("R", "D")


class ChildDied(Exception):
    """The other process ended. ``code`` as in `subprocess.Popen.returncode`."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the other process ended with {code}")
        self.code = code


class Children:
    """Other processes for one format. On Linux they are forked from one that has imported what a round imports, which
    takes most of the time of a short one: elsewhere, libraries do not bear it."""

    def __init__(self, format: str, warehouse: Callable[[], Lake], warm: Path | None = None) -> None:
        """``warehouse`` makes an empty one; a first child tells what it imports as it uses it. ``warm``: an empty
        folder, where the format's harness has a `warm_up`."""
        self._format, self._warehouse, self._warm = format, warehouse, warm
        self._taken: list[Child] = []
        self._forks: Forks | None = None

    def take(self, count: int) -> Sequence[Child]:
        """Some processes that nobody used before."""
        if self._forks is None and sys.platform == "linux":
            self._forks = Forks()
            self._forks.warm([_SERVED])
            [scout] = self._take(1)
            answer = scout.ask(self._warehouse(), "imports")
            # Of a format that fails in this, tests will tell.
            folder = "" if self._warm is None else str(self._warm)
            ready = (f"{_SERVED}:make_ready", self._format, folder)
            with asking_a_harness():
                told = self._forks.warm(answer.get("modules", ()), ready=ready)
            if told is not None:
                raise HarnessFailed(told)
        return self._take(count)

    def fresh(self, *more: str, environment: Mapping[str, str] | None = None) -> Child:
        """An interpreter of its own. ``more``: options of Python's."""
        self._taken.append(Child.fresh(self._format, *more, environment=environment))
        return self._taken[-1]

    def release(self) -> None:
        """End those that were taken."""
        for child in self._taken:
            child.stop()
        self._taken.clear()

    def stop(self) -> None:
        """End all."""
        self.release()
        if self._forks is not None:
            self._forks.stop()

    def _take(self, count: int) -> Sequence[Child]:
        taken = [self._fork() or Child.fresh(self._format) for _ in range(count)]
        self._taken += taken
        return taken

    def _fork(self) -> Child | None:
        forked = None if self._forks is None else self._forks.fork(_SERVED, self._format)
        return None if forked is None else Child(forked)
