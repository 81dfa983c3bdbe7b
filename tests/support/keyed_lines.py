"""Rounds with a primary key from a log of JSON lines, in this process, or in one that a failpoint kills.

``python keyed_lines.py LOGS WAREHOUSE FORMAT`` runs one round of the table ``t``."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changes import Change, applied
from laketier.config import LakeConfig
from laketier.registry import configure, open_lake, open_log_source
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings
from laketier.rounds.keyed import KeyedLog
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import ScanRequest
from laketier.tables.scan import scan
from laketier_verification.lines import LinesTable

COLUMNS = {"id": "int64", "name": "string", "op": "string"}


def config_of(warehouse: Path, format: str, **keys: Any) -> LakeConfig:
    values = {"lake.format": format, "lake.warehouse": str(warehouse), "lake.table": "db.t", "lake.pipeline": "p"}
    return configure(values | keys, environment={})


@dataclass
class KeyedLines:
    """A log of changes, the lake table that follows it, and what that must hold."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine
    expected: dict[int, str] = field(default_factory=dict)

    def append(self, *changes: Change) -> None:
        """A key's changes are all in one bucket."""
        for op, key, name in changes:
            row = {"id": key, "name": None if op == "-D" else name, "op": op}
            self.source.append_raw(json.dumps(row), bucket=key % 2)
        self.expected = applied(changes, self.expected)

    def opened(self) -> KeyedLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return KeyedLog.of(source.open(self.source.name), ("id",), "op")

    def planned(self, **settings: Any) -> tuple[LogRound, list[Any]]:
        made = LogRound(self.opened(), self.config, LogRoundSettings(**settings))
        # As they travel to executors.
        return made, pickle.loads(pickle.dumps(list(made.plan())))  # noqa: S301 - our own bytes

    def round(self, **settings: Any) -> LogRoundResult:
        made, tasks = self.planned(**settings)
        return made.finish(self.engine.run(tasks))

    def read(self) -> list[Mapping[str, Any]]:
        lake = open_lake(self.config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return [row for batch in batches for row in batch.to_pylist()]

    @property
    def rows(self) -> list[tuple[int, str]]:
        return sorted((row["id"], row["name"]) for row in self.read())

    @property
    def is_exact(self) -> bool:
        return self.rows == sorted(self.expected.items())


def main(logs: str, warehouse: str, format: str) -> None:
    engine = LocalEngine(1)
    done = KeyedLines(LinesTable(Path(logs), "t"), config_of(Path(warehouse), format), engine).round()
    engine.close()
    print(None if done.outcome is None else done.outcome.value)


if __name__ == "__main__":
    main(*sys.argv[1:])
