"""Opening, filling and reading tables of every installed format, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.registry import Lake, configure, format_names, open_lake
from laketier.spi import ScanRequest, Token, WriteMode
from laketier.tables import prepare_table
from laketier.tables.scan import scan
from laketier.tiering import RoundResult, TieringRound, write_task

OURS = tuple(name for name in format_names() if name != "feather")
"""The formats of this project; `feather` stands for someone else's."""

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def lake_at(warehouse: Path, format: str, table: str = "db.t", **keys: Any) -> Lake:
    values = {"lake.format": format, "lake.warehouse": str(warehouse), "lake.table": table}
    return open_lake(configure(values | {key.replace("__", "."): value for key, value in keys.items()}, environment={}))


def rows_of(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids), "name": [f"n{i}" for i in ids]}, schema=SCHEMA)


def append(
    lake: Lake, *batches: pa.RecordBatch, epoch: int | None = None, run: str = "run", **round: Any
) -> RoundResult:
    """One round of one task. ``epoch`` None: a batch without a pipeline."""
    info = prepare_table(lake, batches[0].schema if batches else SCHEMA)
    factory = lake.storage.tiering_factory(info)
    token = None if epoch is None else Token("p", run, epoch)
    tiering = TieringRound(factory, token=token, mode=round.get("mode", WriteMode.APPEND))
    return tiering.commit_messages([write_task(factory, batches)])


def read_all(lake: Lake) -> pa.Table:
    info = lake.storage.catalog().load_table(lake.config.table)
    schema, batches = scan(lake.storage.source(info), ScanRequest())
    return pa.Table.from_batches(batches, schema=schema)


def ids(lake: Lake) -> list[int]:
    found: list[int] = sorted(read_all(lake)["id"].to_pylist())
    return found
