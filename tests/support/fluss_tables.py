"""What the tests of a real Fluss share: its tables, and rounds that tier them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from fluss_server import FlussServer
from laketier.config import LakeConfig
from laketier.registry import OpenSource, configure, open_log_source
from laketier.rounds import LogRound, LogRoundResult
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import TableLog
from laketier_verification.lakes import lake_at, read_all

ORDERS = pa.schema([("id", pa.int64()), ("region", pa.string()), ("at", pa.timestamp("us"))])
USERS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
# What a format can't take over of a Fluss table's layout.
LAYOUT: dict[str, dict[str, Any]] = {
    "iceberg": {"with-buckets": False},
    "lance": {"with-buckets": False, "with-partitions": False},
}


def source_at(server: FlussServer, **options: Any) -> OpenSource:
    keys = {"bootstrap-servers": server.bootstrap, "timeout-seconds": 20, **options}
    return open_log_source("fluss", keys, name="shop", origin="service.yaml")


def orders(*ids: int, region: str = "eu") -> list[dict[str, Any]]:
    return [{"id": i, "region": region, "at": 1_700_000_000_000_000 + i} for i in ids]


def lake_keys(warehouse: Path, format: str) -> LakeConfig:
    keys = {"lake.format": format, "lake.warehouse": str(warehouse), "lake.table": "lake.t", "lake.pipeline": "p"}
    return configure(keys, environment={})


def tier(log: TableLog, warehouse: Path, format: str) -> LogRoundResult:
    """One round, in this process's threads."""
    one = LogRound(log, lake_keys(warehouse, format))
    engine = LocalEngine(2)
    try:
        return one.finish(list(engine.run(one.plan())))
    finally:
        engine.close()


def ids_in(warehouse: Path, format: str) -> list[int]:
    found: list[int] = sorted(read_all(lake_at(warehouse, format, "lake.t"))["id"].to_pylist())
    return found
