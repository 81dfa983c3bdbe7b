"""Interpreters of their own, which read splits as tasks on another machine do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laketier.spi import LogSplit, TableLog
from laketier_conformance.children import Child
from laketier_source_conformance.reads import Read

_SERVED = "laketier_source_conformance.child"


class ReadFailed(Exception):
    """A read in another process ended in an error: its name, and what it says."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}({text})")
        self.name = name


class Processes:
    """Started one by one, and ended together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: list[Child] = []
        self._count = 0

    def fresh(self) -> Child:
        """An interpreter that has imported nothing of the source."""
        command, pipe = [sys.executable, "-m", _SERVED], subprocess.PIPE
        child = Child(subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0))
        self._taken.append(child)
        return child

    def begin(self, child: Child, log: TableLog, splits: Sequence[LogSplit], **more: Any) -> Path:
        """Have a process read splits, with a log out of a pickle. Where it will write what it read."""
        self._folder.mkdir(exist_ok=True)
        self._count += 1
        task, answer = self._folder / f"{self._count}.task", self._folder / f"{self._count}.read"
        task.write_bytes(pickle.dumps((log, list(splits))))
        child.send({"do": "read", "task": str(task), "to": str(answer), **more})
        return answer

    def ended(self, child: Child, answer: Path) -> Read:
        """What it read. Raises `ReadFailed`, and `ChildDied` if the process ended."""
        told = child.answer()
        if "failed" in told:
            raise ReadFailed(told["failed"], told["message"])
        read: Read = pickle.loads(answer.read_bytes())  # noqa: S301 - of our own process
        return read

    def read(self, log: TableLog, splits: Sequence[LogSplit], child: Child | None = None, **more: Any) -> Read:
        """Read splits in a process, a fresh one unless one is given."""
        child = child or self.fresh()
        return self.ended(child, self.begin(child, log, splits, **more))

    def stop(self) -> None:
        """End all, whatever they do."""
        for child in self._taken:
            child.stop()
