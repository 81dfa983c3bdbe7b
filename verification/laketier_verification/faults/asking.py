"""Other processes that work on request: long-lived, so that a thousand races cost a thousand rounds and no start-up.

On Linux they are forked from one that has imported what rounds need, as this one had to, and done nothing else.
Requests and answers are JSON, one a line. The child's end is `serve`; what a library prints never gets among the
answers. Nothing here waits by the clock: who is to wait reads a line.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from laketier_conformance.forks import Forked, Forks
from laketier_verification.faults.processes import FORKLESS

PATIENCE_SECONDS = 1800.0
_SHARED = (
    "laketier_verification",
    *("laketier", "laketier_delta", "laketier_iceberg", "laketier_lance", "laketier_localfile"),
    *("deltalake", "pandas", "pyarrow", "pyiceberg", "sqlalchemy"),
)
"""Packages of which a fork has what this process imported. Others may start threads."""


class ProcessDied(Exception):
    """The other process ended. ``code`` as in `subprocess.Popen.returncode`."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the other process ended with {code}")
        self.code = code


class Process:
    """One that runs ``python -m MODULE ARGUMENTS``."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = _forked(module, *arguments) or _fresh(module, *arguments)
        self._buffer = b""

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self.begin(do, **request)
        return self.answer()

    def begin(self, do: str, **request: Any) -> None:
        """Ask without waiting."""
        self.say(json.dumps({"do": do, **request}))

    def say(self, line: str = "go") -> None:
        """Let a child that waits for a line go on."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            raise ProcessDied(self._process.wait()) from None

    def answer(self) -> dict[str, Any]:
        """The next answer. Raises `ProcessDied` when it ended instead."""
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            if not select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0]:
                raise TimeoutError(f"the other process said nothing for {PATIENCE_SECONDS:.0f} seconds")
            data = self._process.stdout.read(65536)
            if not data:
                raise ProcessDied(self._process.wait())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    @staticmethod
    def first_of(processes: Sequence[Process]) -> Process:
        """Wait until one of them has something to say."""
        by_pipe: dict[Any, Process] = {process._process.stdout: process for process in processes}
        for process in processes:
            if b"\n" in process._buffer:
                return process
        ready = select.select(by_pipe, [], [], PATIENCE_SECONDS)[0]
        if not ready:
            raise TimeoutError(f"no other process said anything for {PATIENCE_SECONDS:.0f} seconds")
        return by_pipe[ready[0]]

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def _fresh(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def _forked(module: str, *arguments: str) -> Forked | None:
    if sys.platform != "linux":
        return None
    imported = {name for name in list(sys.modules) if name.partition(".")[0] in _SHARED}
    imported -= {name for name in imported if name.startswith("laketier.spark")}
    _forks().warm([module, *sorted(imported)], but=FORKLESS)
    return _forks().fork(module, *arguments)


@cache
def _forks() -> Forks:
    forks = Forks()
    atexit.register(forks.stop)
    return forks


class Answers:
    """The child's way to its parent."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def say(self, **answer: Any) -> None:
        """One answer."""
        self._out.write(json.dumps(answer) + "\n")
        self._out.flush()

    @staticmethod
    def wait() -> str:
        """The parent's next line. Ends the process when there is no parent any more."""
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        return line.strip()


def serve(requests: Mapping[str, Callable[[Answers, dict[str, Any]], dict[str, Any]]]) -> None:
    """Answer requests until the parent is gone. A failure is an answer: ``{"failed": ...}``."""
    answers = Answers()
    while True:
        request = json.loads(answers.wait())
        try:
            answer = requests[request["do"]](answers, request)
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            answer = {"failed": type(error).__name__, "message": str(error)[:2000]}
        answers.say(**answer)
