"""A request to another process that forks, as daemons and pools of processes do, and goes on beside its child.

Libraries with threads of their own do not bear work in a fork. So what a child's work shows counts only where the same
work went well in another one.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import selectors
import signal
import socket
import stat
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from laketier.spi import Watermark, WriterInitContext, new_attempt_id
from laketier_conformance.lake import Lake, batch, ids_of, token

_PATIENCE_SECONDS = 80.0
"""For all children of which it is not certain that they hang: who asked this process waits for two minutes."""
_LOOK_SECONDS = 0.1
DIED = "it died"
_FUTEX = "202" if platform.machine() == "x86_64" else "98"
_PRIVATE = 128
_DESCRIPTORS = "/proc/self/fd"
Open = Mapping[int, tuple[int, int]]


def fork(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Use a table and fork: a child that only ends, while a task and a commit are under way; one that works; and one
    that works without what this process has open, if there is something, and if the one before it had rows. What each
    ``ends``, ``works`` and ``works alone`` with, None where it hung, and the ``rows`` that this process finds after
    each. ``open``: how many connections and files a child inherits."""
    before, until = _connections(), time.monotonic() + _PATIENCE_SECONDS
    table = lake.create()
    table.append(0)
    inherited = {number: which for number, which in _connections().items() if before.get(number) != which}
    factory, commit = table.factory, new_attempt_id()
    writer = factory.create_writer(WriterInitContext(attempt=new_attempt_id()))
    writer.write(batch(ids_of(1)))
    with closing(table.committer(commit_id=commit)) as committer:
        state = committer.open()
        ends = forked(lambda: {"rows": 0}, until)
        try:
            committer.publish(state, [writer.complete()], Watermark(token(1), commit))
            rows = [table.ids]
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            return {"ends": ends, "went on": f"{type(error).__name__}: {error}"}

    def work(epoch: int) -> dict[str, Any]:
        # Without the loop: it finds out what became of a commit, whatever error came of a connection.
        commit = new_attempt_id()
        with closing(table.committer(commit_id=commit)) as committer:
            mark = Watermark(token(epoch, "child"), commit)
            committer.publish(committer.open(), [table.staged(ids_of(epoch))], mark)
        return {"rows": table.ids}

    def work_alone() -> dict[str, Any]:
        _take_away(inherited)
        return work(1)

    told: dict[str, Any] = {"ends": ends, "open": len(inherited), "rows": rows, "went on": ""}
    if ends is None:
        return told
    # Without anything open the second one would do as the first: that it died in a library would show nothing.
    children = [("works", lambda: work(0)), *([("works alone", work_alone)] if inherited else [])]
    for name, do in children:
        told[name] = forked(do, until)
        if "rows" not in (told[name] or {}):
            return told
        try:
            table.append(1 + len(rows))
            rows.append(table.ids)
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            return {**told, "went on": f"{type(error).__name__}: {error}"}
    return told


def forked(do: Callable[[], dict[str, Any]], until: float) -> dict[str, Any] | None:
    """What a child answers that does this, and ends. None if it hangs: for certain, or still ``until`` then."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a process with threads forks
        child = os.fork()
    if not child:
        _be_forked(do, theirs)
    os.close(theirs)
    said = _Said(ours)
    try:
        while not _has_ended(child):
            if hangs(child) or time.monotonic() > until:
                return None
            said.hear(_LOOK_SECONDS)
        said.hear(0)
        answer: dict[str, Any] = json.loads(said.bytes) if said.bytes else {"failed": DIED}
        return answer
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ours)


class _Said:
    """What came through a pipe. Something that a child started may have its other end for ever."""

    def __init__(self, pipe: int) -> None:
        self.bytes = bytearray()
        self._pipe, self._open = pipe, True
        os.set_blocking(pipe, False)

    def hear(self, seconds: float) -> None:
        """Wait for more so long at most, and take all that is there."""
        if not self._open:
            time.sleep(seconds)
            return
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            selector.select(seconds)
        with suppress(BlockingIOError):
            while more := os.read(self._pipe, 1 << 16):
                self.bytes += more
            self._open = False


def _has_ended(child: int) -> bool:
    """Its number stays its own until it is waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def hangs(process: int) -> bool:
    """Whether each thread of a process waits for another one of it, without an end: of its threads a child has the
    one that forked, and the locks as the others held them. False where the kernel does not tell."""
    try:
        before, after = _waits(process), _waits(process)
    except (OSError, ValueError):
        return False
    # None of them went on between the two looks, so there was a moment at which all of them waited.
    return before is not None and before == after


def _waits(process: int) -> dict[str, str] | None:
    """How often each thread went to sleep so far. None if one of them may go on by itself."""
    found = {}
    for thread in os.listdir(f"/proc/{process}/task"):
        at = f"/proc/{process}/task/{thread}"
        words = Path(at, "syscall").read_text("ascii").split()
        if len(words) < 5 or (words[0], int(words[4], 16)) != (_FUTEX, 0) or not _is_wait(int(words[2], 16)):
            return None
        status = Path(at, "status").read_text("ascii", "replace")
        found[thread] = next(line for line in status.splitlines() if line.startswith("voluntary_ctxt_switches"))
    return found


def _is_wait(operation: int) -> bool:
    """Of FUTEX_WAIT and FUTEX_WAIT_BITSET, on a lock of this process alone."""
    return bool(operation & _PRIVATE) and operation & 0x7F in (0, 9)


def _be_forked(do: Callable[[], dict[str, Any]], answers: int) -> None:
    try:
        said = do()
    except BaseException as error:  # noqa: BLE001 - the parent decides what it means
        said = {"failed": f"{type(error).__name__}: {error}"}
    try:
        os.write(answers, json.dumps(said).encode())
        atexit._run_exitfuncs()  # as in a process that ends by itself
    finally:
        os._exit(0)


def _connections() -> Open:
    """Descriptors of connections to other processes, and of files that are open to be written; none where the system
    does not list them, as where /proc is not mounted."""
    found: dict[int, tuple[int, int]] = {}
    for name in os.listdir(_DESCRIPTORS) if os.path.isdir(_DESCRIPTORS) else ():
        with suppress(OSError):
            status = os.stat(f"{_DESCRIPTORS}/{name}")
            writes = os.lstat(f"{_DESCRIPTORS}/{name}").st_mode & stat.S_IWUSR
            is_file = stat.S_ISREG(status.st_mode) and writes
            if is_file or (stat.S_ISSOCK(status.st_mode) and _leads_elsewhere(int(name))):
                found[int(name)] = (status.st_dev, status.st_ino)
    return found


def _leads_elsewhere(descriptor: int) -> bool:
    """Whether somebody has a name at the other end. A pair of sockets is how a library wakes its own threads."""
    with socket.socket(fileno=os.dup(descriptor)) as theirs:
        return bool(theirs.getpeername())


def _take_away(inherited: Open) -> None:
    """Each leads nowhere from now on: a connection whose other end is closed, or an empty file."""
    for number, which in inherited.items():
        with suppress(OSError):
            status = os.fstat(number)
            if (status.st_dev, status.st_ino) != which:
                continue
            if stat.S_ISSOCK(status.st_mode):
                end, other = socket.socketpair()
                other.close()
                os.dup2(end.detach(), number)
            else:
                os.dup2(os.open(os.devnull, os.O_RDONLY), number)
