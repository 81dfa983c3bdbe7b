"""A tiering service to be harmed: logs that grow, workers as processes, and a judge that reads the lake with others."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from laketier.kit.failpoints import VARIABLE
from laketier.service.schedule import State
from laketier.service.state import StateError, StateStore, TableStatus
from laketier_verification.faults.service_judge import Judged
from laketier_verification.lines import LinesTable
from laketier_verification.postgresql import PostgreSQL

PATIENCE_SECONDS = 120.0
LEASE_SECONDS = 2
_POLL_SECONDS = 0.1
_FREE_SECONDS = 0.01


class Worker:
    """``laketier serve``, in a process of its own."""

    def __init__(self, file: Path, log: Path, failpoints: str) -> None:
        self.log = log
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", VARIABLE: failpoints}
        command = [sys.executable, "-c", "from laketier.cli.app import main; main()"]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "-v", "serve", str(file), "--engine", "local"],
                stdout=output, stderr=output, env=environment,
            )  # fmt: skip

    @property
    def text(self) -> str:
        """What it said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def says(self, text: str) -> bool:
        """Whether it said that so far."""
        return text in self.text

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def is_up(self) -> bool:
        """Whether it serves, or is over already."""
        return self.is_over() or self.says(" serves")

    def is_stopped(self) -> bool:
        """Whether none of its threads runs."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/stat")
        return all(task.read_text().rpartition(")")[2].split()[0] in "Tt" for task in tasks)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code, after a signal that it may already have had."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Lab(Judged):
    """``tables`` logs of ``buckets`` buckets each, one service over them. ``bad_every``: so many-th records are none,
    and go to the dead letters."""

    def __init__(
        self,
        format: str,
        folder: Path,
        *,
        tables: int = 6,
        buckets: int = 2,
        bad_every: int = 0,
        server: PostgreSQL | None = None,
    ) -> None:
        super().__init__(format, folder, self._logs(folder, tables, buckets), buckets, bad_every)
        self.database = folder / "state.db"
        self.server = server
        self.state = f"sqlite:///{self.database}" if server is None else server.url()
        self.workers: list[Worker] = []
        self._number = 0
        self._ids = 0
        self._stop = threading.Event()
        self._producer: threading.Thread | None = None
        self.unfed: set[str] = set()
        self._store: StateStore | None = None
        self._closed = threading.Event()
        self._describe()

    def _logs(self, folder: Path, tables: int, buckets: int) -> Sequence[LinesTable]:
        return [LinesTable(folder / "logs", f"t{number}").create(buckets=buckets) for number in range(tables)]

    def _source(self) -> dict[str, object]:
        return {"type": "lines", "options": {"path": str(self.folder / "logs")}}

    def _reading(self) -> dict[str, object]:
        return {}

    def _describe(self) -> None:
        sink = {"lake.format": self.format, "lake.warehouse": str(self.folder / "lake")}
        defaults = {"freshness": "1s", "target": "db.{table}", "sink": sink, **self._reading()}
        if self.bad_every:
            defaults["on-bad-record"] = "dead-letter"
        document = {
            "name": "lab",
            "state": self.state,
            "sources": {"src": self._source()},
            "defaults": defaults,
            "tables": [{"source": "src"}],
            "lease": f"{LEASE_SECONDS}s",
            "discover-every": "1s",
        }
        (self.folder / "service.yaml").write_text(json.dumps(document))  # YAML is a superset

    # -- what happens ----------------------------------------------------------------------------------------------

    def start(self, failpoints: str = "") -> Worker:
        """One more worker."""
        self._number += 1
        log = self.folder / f"worker{self._number}.log"
        worker = Worker(self.folder / "service.yaml", log, failpoints)
        self.workers.append(worker)
        return worker

    def pausing(self, point: str) -> tuple[Worker, Path]:
        """A worker that stops at each hit of ``point`` until the flag is removed for good."""
        flag = self.folder / f"flag{self._number}"
        return self.start(f"{point}=pause({flag})"), flag

    def free(self, flag: Path) -> None:
        """The failpoint that pauses by ``flag`` pauses no more."""

        def work() -> None:
            while not self._closed.wait(_FREE_SECONDS):
                flag.unlink(missing_ok=True)

        threading.Thread(target=work, daemon=True).start()

    def feed(self, rows: int = 5) -> None:
        """Append to every bucket of every table."""
        for table in self.lines:
            if table.name in self.unfed:
                continue
            for bucket in range(self.buckets):
                lines = []
                for _ in range(rows):
                    self._ids += 1
                    bad = self.bad_every and self._ids % self.bad_every == 0
                    lines.append("poison" if bad else json.dumps({"id": self._ids, "text": f"row {self._ids}"}))
                table.append_raw(*lines, bucket=bucket)

    def produce(self) -> None:
        """`feed` in the background until `drain`."""

        def work() -> None:
            while not self._stop.wait(0.1):
                self.feed(3)

        self._stop.clear()
        self._producer = threading.Thread(target=work, daemon=True)
        self._producer.start()

    def quiet(self) -> None:
        """No more rows."""
        self._stop.set()
        if self._producer is not None:
            self._producer.join()

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for it. Raises `TimeoutError` with what the workers said."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                told = "\n".join(worker.text[-1500:] for worker in self.workers)
                states = [(status.table.name, status.table.state, status.table.error) for status in self.tables()]
                raise TimeoutError(f"{what}: {states}\n{told}")
            time.sleep(_POLL_SECONDS)

    def tables(self) -> Sequence[TableStatus]:
        """What the state database says; nothing where it is not there or is busy."""
        try:
            if self._store is None:
                self._store = StateStore.open(self.state, service="lab")
            return self._store.snapshot()
        except StateError:
            return ()

    def state_of(self, name: str) -> State | None:
        """Of the newest registration of a source table."""
        return next((each.table.state for each in reversed(self.tables()) if each.table.source_table == name), None)

    def until_tiered(self, but: Sequence[str] = ()) -> None:
        """Until every table that is fed was tiered once more, from beginning to end."""
        since = time.time_ns() // 1_000_000
        wanted = {f"src.{table.name}" for table in self.lines} - {f"src.{name}" for name in but}

        def all_tiered() -> bool:
            done = {
                status.table.name
                for status in self.tables()
                if (status.table.last_tiered_at or 0) >= since and not status.table.lag_offsets
            }
            return wanted <= done

        self.until(all_tiered, "the tables were not tiered")

    def drain(self, but: Sequence[str] = ()) -> None:
        """The log ends, the lake gets there, and the workers end as they should."""
        self.quiet()
        self.until_tiered(but)
        for worker in self.workers:
            # One that was not told yet what a signal means could only die of it.
            self.until(worker.is_up, "a worker did not start")
            if worker.process.poll() is None and (code := worker.end()):
                raise AssertionError(f"a worker ended with {code} after SIGTERM: {worker.text[-2000:]}")

    def kill(self) -> None:
        """All workers, at once."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()

    def close(self) -> None:
        """Let nothing run on."""
        self.quiet()
        self.kill()
        self._closed.set()
        self._close_store()

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    @contextmanager
    def stopped(self, worker: Worker) -> Iterator[None]:
        """SIGSTOP within the block. Not while it reads or writes a database of SQLite, which would stop everybody."""
        files = [path for path in (self.database, self.folder / "lake" / "catalog.db") if path.exists()]
        connections = [sqlite3.connect(path, timeout=60, isolation_level=None) for path in files]
        try:
            for connection in connections:
                connection.execute("BEGIN EXCLUSIVE")
            worker.send(signal.SIGSTOP)
            # A signal takes its time; until then a thread may get what is let go here.
            self.until(worker.is_stopped, "the worker did not stop")
        finally:
            for connection in connections:
                connection.close()
        try:
            yield
        finally:
            worker.send(signal.SIGCONT)

    def lose_state(self) -> None:
        """While no worker runs."""
        self._close_store()
        for path in self.folder.glob("state.db*"):
            path.unlink()

    def fences(self) -> dict[str, int]:
        """Of each table's newest registration."""
        return {status.table.source_table: status.table.fence for status in self.tables()}
