"""A request to another process that forks, as daemons and pools of processes do, and goes on beside its child.

Libraries with threads of their own do not bear work in a fork. So what a child's work shows counts only where the same
work went well in another one.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import stat
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

from laketier.spi import Watermark, WriterInitContext, new_attempt_id
from laketier_conformance.lake import Lake, batch, ids_of, token

PATIENCE_SECONDS = 10.0
_DESCRIPTORS = "/proc/self/fd"
Open = Mapping[int, tuple[int, int]]


def fork(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Use a table and fork: a child that only ends, while a task and a commit are under way; one that works; and one
    that works without what this process has open. What each ``ends``, ``works`` and ``works alone`` with, None where it
    hung, and the ``rows`` that this process finds after each. ``open``: how many connections and files a child
    inherits."""
    before = _connections()
    table = lake.create()
    table.append(0)
    inherited = {number: which for number, which in _connections().items() if before.get(number) != which}
    factory, commit = table.factory, new_attempt_id()
    writer = factory.create_writer(WriterInitContext(attempt=new_attempt_id()))
    writer.write(batch(ids_of(1)))
    with closing(table.committer(commit_id=commit)) as committer:
        state = committer.open()
        ends = _forked(lambda: {"rows": 0})
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
    for name, do in (("works", lambda: work(0)), ("works alone", work_alone)):
        told[name] = _forked(do)
        try:
            table.append(1 + len(rows))
            rows.append(table.ids)
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            return {**told, "went on": f"{type(error).__name__}: {error}"}
    return told


def _forked(do: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What a child answers that does this, and ends. None if it hangs."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a process with threads forks
        child = os.fork()
    if not child:
        _be_forked(do, theirs)
    os.close(theirs)
    said = b""
    try:
        while select.select([ours], [], [], PATIENCE_SECONDS)[0]:
            more = os.read(ours, 1 << 16)
            if not more:
                answer: dict[str, Any] = json.loads(said or b'{"failed": "it died"}')
                return answer
            said += more
        return None
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ours)


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
    """Descriptors of connections to other processes, and of files that are open to be written."""
    found = {}
    for name in os.listdir(_DESCRIPTORS):
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
