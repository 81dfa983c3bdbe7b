"""Processes that hold the client, from the side that asks them.

pyfluss 1.0.0 aborts (SIGABRT) in about half of all runs when its interpreter ends. In a Spark worker or in the service
that would be a failed task or a core dump, so it is never loaded there: a child loads it, and leaves by ``os._exit``.
A child costs about a second to start, so those that have done their work wait here for a while for the next.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from laketier.spi import StorageError
from laketier_fluss.connection import Connection
from laketier_fluss.frames import PAYLOAD, error_of, write_frame

_GRACE = 15.0
"""Seconds beyond the connection's timeout: a child says why a server is silent; this is for a child that is."""
_IDLE_SECONDS = 30.0
_IDLE_MOST = 2
_CHUNK = 1024 * 1024
_TAIL = 600


class Child:
    """One process. One request at a time."""

    def __init__(self, connection: Connection, command: list[str] | None = None) -> None:
        self._connection = connection
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        # -P: a file called fluss.py where the service was started must not be taken for the client.
        self._process = subprocess.Popen(
            command or [sys.executable, "-P", "-m", "laketier_fluss.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._out, selectors.EVENT_READ)
        self._read = bytearray()
        self.idle_since = 0.0
        self._send({"settings": connection.settings(), "timeout": connection.timeout})

    def ask(self, request: dict[str, Any]) -> Iterator[tuple[dict[str, Any], pa.Buffer | None]]:
        """The frames of the answer, up to the one that says that it is the last. Raises the error that the child
        answers with, and `StorageError` when it dies or says nothing."""
        self._send(request)
        while True:
            header = json.loads(self._line())
            if "error" in header:
                raise error_of(header)
            yield header, pa.py_buffer(self._bytes(header[PAYLOAD])) if PAYLOAD in header else None
            if header.get("last"):
                return

    def close(self) -> None:
        """End it, whatever it does."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._ready.close()
        self._process.kill()
        self._process.wait()
        self._said.close()

    @property
    def process_id(self) -> int:
        """Of the child."""
        return self._process.pid

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin, message)
        except OSError:
            raise self._dead() from None

    def _line(self) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            self._receive()
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    def _bytes(self, size: int) -> bytes:
        while len(self._read) < size:
            self._receive()
        wanted = bytes(memoryview(self._read)[:size])
        del self._read[:size]
        return wanted

    def _receive(self) -> None:
        patience = self._connection.timeout + _GRACE
        if not self._ready.select(patience):
            raise StorageError(
                f"the process that reads from Fluss did not answer for {patience:g} s",
                where=self._connection.bootstrap_servers,
                why=self._tail(),
                fix="The process was ended. Check whether this machine is overloaded.",
            )
        data = os.read(self._out, _CHUNK)
        if not data:
            raise self._dead()
        self._read += data

    def _dead(self) -> StorageError:
        self._process.kill()  # it is going, or has shut its end of the pipe
        code = self._process.wait()
        ended = f"by signal {-code}" if code < 0 else f"with code {code}"
        return StorageError(
            f"the process that reads from Fluss ended {ended}",
            where=self._connection.bootstrap_servers,
            why=self._tail(),
            fix="The round is run again; nothing of it was published.",
        )

    def _tail(self) -> str | None:
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _TAIL))
        said = self._connection.redact(self._said.read().decode(errors="replace")).strip()
        return f"it said: {said}" if said else None


_lock = threading.Lock()
_idle: dict[tuple[int, Connection], list[Child]] = {}


@contextmanager
def borrowed(connection: Connection) -> Generator[Child, None, None]:
    """A child of this process, an idle one if there is one. It goes back when the body ends well; after an error, or
    when its answer was not read to the end, it is ended."""
    # By the process, as a fork of it (Spark's daemon makes its workers so) must not share its parent's pipes.
    key = (os.getpid(), connection)
    child = _taken(key) or Child(connection)
    try:
        yield child
    except BaseException:
        child.close()
        raise
    child.idle_since = time.monotonic()
    with _lock:
        waiting = _idle.setdefault(key, [])
        if len(waiting) < _IDLE_MOST:
            waiting.append(child)
            return
    child.close()


def ask(connection: Connection, request: dict[str, Any]) -> tuple[dict[str, Any], pa.Buffer | None]:
    """A request with one frame of answer. Raises as `Child.ask`."""
    with borrowed(connection) as child:
        (answer,) = child.ask(request)
        return answer


def close_idle(connection: Connection) -> None:
    """End those that wait."""
    with _lock:
        waiting = _idle.pop((os.getpid(), connection), [])
    for child in waiting:
        child.close()


@atexit.register
def _close_all() -> None:
    for process, connection in list(_idle):
        if process == os.getpid():
            close_idle(connection)


def _taken(key: tuple[int, Connection]) -> Child | None:
    old: list[Child] = []
    found = None
    with _lock:
        waiting = _idle.get(key, [])
        while waiting and found is None:
            child = waiting.pop()
            if time.monotonic() - child.idle_since < _IDLE_SECONDS:
                found = child
            else:
                old.append(child)
    for child in old:
        child.close()
    return found
