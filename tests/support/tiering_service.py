"""A tiering service in this process, over logs that a test writes, with a clock that the test moves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier.config.service import load_service
from laketier.registry import open_lake
from laketier.rounds.log_engine import LocalEngine, LogEngine
from laketier.service.open_files import OpenFileKeeper
from laketier.service.state import RegisteredTable, StateStore
from laketier.service.tables import ServiceTables
from laketier.service.worker import TieringWorker, WorkerSettings
from laketier.spi import ScanRequest
from laketier.tables.scan import scan
from laketier_verification.lines import LinesTable

PATIENCE_SECONDS = 60


@dataclass
class Service:
    """A service over logs of JSON lines. The clock is the test's: rounds come when it says so."""

    folder: Path
    names: Sequence[str]
    now: int = 1_000_000
    engine: LogEngine = field(default_factory=lambda: LocalEngine(2))
    opened: list[StateStore] = field(default_factory=list)
    sink: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lines = {name: LinesTable(self.folder / "logs", name).create() for name in self.names}
        sink = {"lake.format": "localfile", "lake.warehouse": str(self.folder / "lake"), **self.sink}
        document = {
            "name": "tests",
            "state": f"sqlite:///{self.folder}/state.db",
            "sources": {"src": {"type": "lines", "options": {"path": str(self.folder / "logs")}}},
            "defaults": {"freshness": "10s", "target": "db.{table}", "sink": sink},
            "tables": [{"source": "src"}],
        }
        self.file = self.folder / "service.yaml"
        self.file.write_text(json.dumps(document))

    def worker(self, patience: float = PATIENCE_SECONDS, **settings: Any) -> TieringWorker:
        """A new one, which knows all tables."""
        described = load_service(self.file)
        store = StateStore.open(described.state, service=described.name, clock=lambda: self.now)
        self.opened.append(store)
        tables = ServiceTables(described, store, origin="the test")
        tables.discover()
        given = WorkerSettings(patience_seconds=patience, drain_seconds=PATIENCE_SECONDS, **settings)
        open_files = OpenFileKeeper(tables) if isinstance(self.engine, LocalEngine) else None
        return TieringWorker(store, tables, self.engine, given, clock=lambda: self.now, open_files=open_files)

    def later(self) -> None:
        self.now += 3_600_000

    def table(self, name: str) -> RegisteredTable:
        return next(each.table for each in self.opened[-1].snapshot() if each.table.source_table == name)

    def ids(self, worker: TieringWorker, name: str) -> list[int]:
        lake = open_lake(worker.tables.table(f"src.{name}").config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return sorted(row["id"] for batch in batches for row in batch.to_pylist())


def work_until(worker: TieringWorker, condition: Callable[[], bool]) -> None:
    def work() -> bool:
        if not (reached := condition()):
            worker.work_once()
        return reached

    until(work)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        threading.Event().wait(0.02)
