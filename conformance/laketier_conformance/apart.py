"""Files of a warehouse, read and changed by a process that does nothing else.

A process that closes a file loses all its POSIX locks on it, whichever descriptor it took them through. A database that
a format keeps open in the process of pytest would lose its own, and go on without knowing.

Ours are the bytes alone: names, dates and links are looked at and changed without opening a file.
"""

from __future__ import annotations

import atexit
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

Named = str | os.PathLike[str]
N = TypeVar("N", bound=Named)


def read(path: Named) -> bytes:
    """The bytes of a file. Raises `OSError`, as all of these do."""
    return read_all([path])[path]


def read_all(paths: Collection[N]) -> dict[N, bytes]:
    """The bytes of each: to ask once takes as long as to ask for one."""
    if not paths:
        return {}
    found: list[bytes] = _ask("read", [os.fsencode(path) for path in paths])
    return dict(zip(paths, found, strict=True))


def write(path: Named, content: bytes) -> None:
    """Make a file hold this, as ``Path.write_bytes``."""
    write_all({path: content})


def write_all(files: Mapping[N, bytes]) -> None:
    """The same of several, in their order."""
    if files:
        _ask("write", [(os.fsencode(path), content) for path, content in files.items()])


def copy(source: Named, target: Named) -> None:
    """The bytes of one file into another, or a folder with all that is below it."""
    _ask("copy", os.fsencode(source), os.fsencode(target))


class _Apart:
    """Our end. Its process is started by the first who asks, and ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """A plugin forks the process of pytest: what the child asks goes to a process of its own."""
        # Kept, as closing its pipes may send what another thread was about to send.
        self._lock, self._inherited, self._process = threading.Lock(), self._process, None

    def ask(self, do: str, *arguments: Any) -> Any:
        with self._lock:
            if self._process is None:
                # Of its own folder's modules and of the user's it needs none.
                command = [sys.executable, "-I", "-S", __file__]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self._owner = os.getpid()
                atexit.register(self._stop)
            requests, answers = self._process.stdin, self._process.stdout
            assert requests is not None
            assert answers is not None
            try:
                pickle.dump((do, arguments), requests)
                requests.flush()
                answer = pickle.load(answers)  # noqa: S301 - of our own process
            except BaseException:  # the user interrupts: whoever asks next must not get this answer
                self._stop()
                raise
        if isinstance(answer, OSError):
            if isinstance(answer.filename, bytes):
                answer.filename = os.fsdecode(answer.filename)
            raise answer
        return answer

    def _stop(self) -> None:
        if self._process is not None and self._owner == os.getpid():
            # A process that was forked from this one may keep the pipe open: the end of it would never come.
            self._process.kill()
            self._process.communicate()
            self._process = None


_ask = _Apart().ask


def _read(paths: list[bytes]) -> list[bytes]:
    found = []
    for path in paths:
        with open(path, "rb") as file:
            found.append(file.read())
    return found


def _write(files: list[tuple[bytes, bytes]]) -> None:
    for path, content in files:
        # Never empty in between: a process that has it mapped would end by a signal.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
            file.write(content)
            file.truncate()


def _copy(source: bytes, target: bytes) -> None:
    if os.path.isdir(source):
        shutil.copytree(os.fsdecode(source), os.fsdecode(target))
    else:
        shutil.copyfile(source, target)


_DO: Mapping[str, Callable[..., Any]] = {"read": _read, "write": _write, "copy": _copy}


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: it ends when the run does
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            do, arguments = pickle.load(requests)  # noqa: S301 - of the process that started this one
        except EOFError:
            return
        answer: Any
        try:
            answer = _DO[do](*arguments)
        except OSError as error:
            answer = OSError(*error.args[:2], error.filename) if error.errno else OSError(str(error))
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    _serve()
