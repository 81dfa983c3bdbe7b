"""A catalog of one table, which counts what is asked of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from laketier.registry import Lake, configure, open_lake
from laketier.spi import TableDescriptor, TableInfo, TablePath

SCHEMA = pa.schema([("id", pa.int64())])


@dataclass
class Catalog:
    """Of one table, which has ``version``. ``gate``: loads wait for it."""

    version: str | None = "v1"
    handle: int | None = 100
    loads: int = 0
    checks: int = 0
    error: Exception | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    changes_while_loading: bool = False

    def load_table(self, path: TablePath) -> TableInfo:
        self.loads += 1
        assert self.gate.wait(60)
        if self.changes_while_loading:
            self.version = f"{self.version}+"
        return TableInfo(path, TableDescriptor(SCHEMA), f"uuid of {self.version}", "/w").with_handle([self.loads])

    def table_version(self, path: TablePath, known: str | None = None) -> str | None:
        self.checks += 1
        if self.error is not None:
            raise self.error
        return self.version

    def handle_bytes(self, table: TableInfo) -> int | None:
        return self.handle


@dataclass
class Storage:
    kept: Catalog

    def catalog(self) -> Catalog:
        return self.kept


def lake_of(catalog: Catalog, table: str = "db.t", **changes: Any) -> Lake:
    values = {"lake.format": "localfile", "lake.warehouse": "/w", "lake.table": table}
    config = replace(configure(values, environment={}), **changes)
    return Lake(config, open_lake(config).plugin, Storage(catalog))  # type: ignore[arg-type]
