"""Pipelines on Spark: one driver process for many lives, killed with all of its processes, and started anew."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from laketier_verification.faults import work
from laketier_verification.faults.pipeline import Pipeline
from laketier_verification.faults.processes import Life, Processes
from laketier_verification.faults.progress import Progress

LANES = ("batch", "split", "stream")
EPOCHS = 3
_PATIENCE_SECONDS = 400.0


@dataclass(frozen=True)
class CheckpointProgress(Progress):
    """Spark's checkpoint, where the engine keeps the log."""

    @property
    def acknowledged(self) -> list[int]:
        folder = self.folder / "commits"
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal()) if folder.exists() else []

    def acknowledged_at(self, epoch: int) -> float:
        return (self.folder / "commits" / str(epoch)).stat().st_mtime


@dataclass
class SparkPipeline(Pipeline):
    """A pipeline in one of the lanes."""

    epochs: int = EPOCHS
    lane: str = "batch"

    def __post_init__(self) -> None:
        self.settings |= {"lane": self.lane, "landing": str(self.folder / "landing")}
        if not (self.folder / "landing").exists():
            for epoch in range(self.epochs):
                work.land(self.folder / "landing" / f"{epoch:04}", epoch, self.rows)

    @property
    def progress(self) -> Progress:
        folder = self.folder / "progress"
        return CheckpointProgress(folder) if self.lane == "stream" else Progress(folder)


class SparkLife(Life):
    """A life within the driver that `SparkProcesses` keeps."""

    patience = _PATIENCE_SECONDS

    def __init__(self, processes: SparkProcesses, request: dict[str, Any]) -> None:
        super().__init__(request)
        self._processes = processes

    def poll(self) -> int | None:
        """None while it is at work, 0 when it has answered, -9 when its driver is gone."""
        return self._processes.poll()

    def kill(self) -> None:
        self._processes.kill()

    def kill_workers(self) -> None:
        """SIGKILL to the daemon that forks Spark's Python workers, and to all workers."""
        for process in self._processes.family():
            with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                if "pyspark.daemon" in process.cmdline():
                    process.kill()

    def wait(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (code := self.poll()) is None:
            self._still(deadline)
        if code:
            self._processes.kill()  # the JVM and the workers outlive the Python driver for a while
            return {"outcome": "killed"}
        return self._processes.answer()


class SparkProcesses(Processes):
    """Keeps one Spark driver, and starts another when it was killed."""

    def __init__(self, **environment: str) -> None:
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._answers: list[dict[str, Any]] = []
        self.starts = 0

    def start(self, request: dict[str, Any]) -> SparkLife:
        life = SparkLife(self, request)
        self.order(request)
        return life

    def together(self, requests: Sequence[dict[str, Any]], at: str) -> dict[str, Any]:
        """All of them at once; with ``at`` the driver is killed when each stands at that failpoint."""
        self.order({"together": list(requests), "at": at})
        return SparkLife(self, {}).wait()

    def order(self, document: dict[str, Any]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._open()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")

    def poll(self) -> int | None:
        assert self._process is not None
        self._listen(0)
        if self._answers:
            return 0
        return self._process.poll()

    def answer(self) -> dict[str, Any]:
        return self._answers.pop()

    def family(self) -> list[psutil.Process]:
        """The driver's processes: the JVM and all Python workers belong to its session."""
        assert self._process is not None
        found = []
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == self._process.pid:
                    found.append(process)
            except (ProcessLookupError, psutil.NoSuchProcess):
                continue
        return found

    def kill(self) -> None:
        """SIGKILL to the whole session: the machine went away."""
        if self._process is None:
            return
        members = self.family()
        for member in members:
            try:
                os.kill(member.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.kill()
        self._process.wait()
        psutil.wait_procs([member for member in members if member.pid != self._process.pid], timeout=30)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process = None
        self._answers.clear()
        self._buffer = b""

    close = kill

    def _open(self) -> None:
        self.kill()
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "laketier_verification.faults.spark_driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **self._environment},
                start_new_session=True,
                bufsize=0,
            )
            self.starts += 1
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not self._answers:
                self._listen(1)
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"Spark did not start: {log.read().decode(errors='replace')[-3000:]}")
        self._answers.clear()

    def _listen(self, seconds: float) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], seconds)[0]:
            data = self._process.stdout.read(65536)
            if not data:
                return
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            self._answers += [json.loads(line) for line in lines]
            seconds = 0
