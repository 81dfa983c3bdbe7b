"""Other processes, which read splits as tasks on another machine do, and run rounds as drivers that may be killed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from laketier.spi import LogSplit, TableLog
from laketier_conformance.children import Child
from laketier_conformance.forks import Forks
from laketier_source_conformance.reads import Read

_SERVED = "laketier_source_conformance.child"


class AskedFailed(Exception):
    """What another process was asked for ended in an error: its name, and what it says."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"in another process: {name}({text})")
        self.name = name


def warmed() -> Forks | None:
    """What forks processes that have imported what a round imports, and nothing of the source. None elsewhere than on
    Linux, where libraries do not bear it."""
    if sys.platform != "linux":
        return None
    forks = Forks()
    forks.warm([_SERVED])
    return forks


class Processes:
    """Taken one by one, and ended together."""

    def __init__(self, folder: Path, forks: Forks | None = None) -> None:
        self._folder, self._forks = folder, forks
        self._taken: list[Child] = []
        self._readers: list[Forks] = []
        self._count = 0

    def fresh(self) -> Child:
        """An interpreter of its own, that has imported nothing of the source: in another folder and time zone, and with
        other hashes of text, as on another machine."""
        elsewhere = self._elsewhere()
        elsewhere.mkdir(parents=True, exist_ok=True)
        command, pipe = [sys.executable, "-m", _SERVED], subprocess.PIPE
        folders = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        environment = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Kolkata"}
        environment["PYTHONPATH"] = os.pathsep.join(folders)
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, cwd=elsewhere, env=environment)
        return self._keep(Child(process))

    def _elsewhere(self) -> Path:
        """A folder as deep as this process's own has the same folders above it: a relative path might be right there,
        too."""
        as_deep = len(self._folder.resolve().parts) == len(Path.cwd().parts)
        return self._folder / "deeper" if as_deep else self._folder

    def take(self) -> Child:
        """A process that nobody used before: sooner than a fresh interpreter."""
        forked = None if self._forks is None else self._forks.fork(_SERVED)
        return self.fresh() if forked is None else self._keep(Child(forked))

    def _keep(self, child: Child) -> Child:
        self._taken.append(child)
        return child

    def begin(self, child: Child, log: TableLog, splits: Sequence[LogSplit], do: str = "read", **more: Any) -> Path:
        """Have a process read splits, with a log out of a pickle. Where it will write what it read."""
        self._folder.mkdir(exist_ok=True)
        self._count += 1
        task, answer = self._folder / f"{self._count}.task", self._folder / f"{self._count}.read"
        task.write_bytes(pickle.dumps((log, list(splits))))
        child.send({"do": do, "task": str(task), "to": str(answer), **more})
        return answer

    def ended(self, child: Child, answer: Path) -> Read:
        """What it read. Raises `AskedFailed`, and `ChildDied` if the process ended."""
        _told(child)
        read: Read = pickle.loads(answer.read_bytes())  # noqa: S301 - of our own process
        return read

    def read(self, log: TableLog, splits: Sequence[LogSplit], child: Child | None = None, **more: Any) -> Read:
        """Read splits in a process, a fresh interpreter unless one is given."""
        child = child or self.fresh()
        return self.ended(child, self.begin(child, log, splits, **more))

    def readers(self, log: TableLog, splits: Sequence[LogSplit]) -> Callable[[], Child]:
        """Gives processes that have imported what a read of splits imports, and done nothing: for those who take many
        to read these. As `take` gives them elsewhere than on Linux, and where these imports start threads."""
        child = self.take()
        self.begin(child, log, splits)
        modules = _told(child)["modules"]
        child.stop()
        if self._forks is None:
            return self.take
        forks = Forks()
        self._readers.append(forks)
        forks.warm([_SERVED, *modules])

        def take() -> Child:
            forked = forks.fork(_SERVED)
            return self.take() if forked is None else self._keep(Child(forked))

        return take

    def read_range(self, named: Mapping[str, Any], **texts: str) -> Read:
        """Have a driver of its own plan and read a range, of which it has the offsets as text."""
        self._folder.mkdir(exist_ok=True)
        self._count += 1
        answer = self._folder / f"{self._count}.read"
        self.ask("range", to=str(answer), **named, **texts)
        read: Read = pickle.loads(answer.read_bytes())  # noqa: S301 - of our own process
        return read

    def count(self, log: TableLog, splits: Sequence[LogSplit]) -> dict[str, Any]:
        """Read splits in a process that keeps nothing, and say how many rows there were, how many in the largest
        batch, and by how many bytes it grew."""
        child = self.take()
        self.begin(child, log, splits, "count")
        return _told(child)

    def begun(self, log: TableLog, splits: Sequence[LogSplit]) -> tuple[int, Callable[[], int]]:
        """Begin to read splits in a process. Returns the number of rows of the first batch, and what reads the others
        and returns theirs. Raises as `ended` does."""
        child = self.take()
        self.begin(child, log, splits, "begin")
        first: int = _told(child)["rows"]
        return first, lambda: self.ask_of(child, "go_on")["rows"]

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Ask a process of its own for anything else. Raises as `ended` does."""
        return self.ask_of(self.take(), do, **request)

    def ask_of(self, child: Child, do: str, **request: Any) -> dict[str, Any]:
        """The same of a process that was taken, which it ends."""
        try:
            child.send({"do": do, **request})
            return _told(child)
        finally:
            child.stop()

    def stop(self) -> None:
        """End all, whatever they do."""
        for child in self._taken:
            child.stop()
        for forks in self._readers:  # a fork is waited for by the process that forked it
            forks.stop()


def _told(child: Child) -> dict[str, Any]:
    answer = child.answer()
    if "failed" in answer:
        raise AskedFailed(answer["failed"], answer["message"])
    return answer
