"""The other end of `laketier_conformance.child`."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from laketier_conformance.lake import Lake

PATIENCE_SECONDS = 120.0


class Child:
    """One other process, for one format. Speaks when asked; a fresh interpreter, never a fork."""

    def __init__(self, format: str) -> None:
        command = [sys.executable, "-m", "laketier_conformance.child", format]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._buffer = b""

    def ask(self, lake: Lake, do: str, **request: Any) -> dict[str, Any]:
        """Ask and wait for the answer."""
        self.begin(lake, do, **request)
        return self.answer()

    def begin(self, lake: Lake, do: str, **request: Any) -> None:
        """Ask without waiting."""
        document = {"do": do, "warehouse": lake.location, "options": dict(lake.options), **request}
        self._write(json.dumps(document))

    def go(self) -> None:
        """Let a child that said it was ready go on."""
        self._write("go")

    def answer(self) -> dict[str, Any]:
        """The next answer. Raises `ChildDied` when it ended instead."""
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            if not select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0]:
                raise TimeoutError(f"the other process said nothing for {PATIENCE_SECONDS:.0f} seconds")
            data = self._process.stdout.read(65536)
            if not data:
                raise ChildDied(self._process.wait())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

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


class ChildDied(Exception):
    """The other process ended. ``code`` as in `subprocess.Popen.returncode`."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the other process ended with {code}")
        self.code = code


class Children:
    """Keeps one spare process starting up while a test works with the others."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._spare = Child(format)
        self._taken: list[Child] = []

    def take(self, count: int) -> Sequence[Child]:
        """Some processes that nobody used before."""
        fresh = [self._spare, *(Child(self._format) for _ in range(count - 1))]
        self._spare = Child(self._format)
        self._taken += fresh
        return fresh

    def release(self) -> None:
        """End those that were taken."""
        for child in self._taken:
            child.stop()
        self._taken.clear()

    def stop(self) -> None:
        """End all."""
        self.release()
        self._spare.stop()
