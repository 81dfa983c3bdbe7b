"""What every pipeline under test moves: epochs of rows, in which an epoch's number tells its ids."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
COLUMNS = "id long, name string"
"""`SCHEMA`, as Spark spells it."""
TABLE = "db.events"
PIPELINE = "events"
_STRIDE = 1_000_000
_LANDED_AT = 1_750_000_000


def ids_of(epoch: int, rows: int, salt: int = 0) -> list[int]:
    """The ids that an epoch holds. Another ``salt``: other rows under the same number."""
    start = (epoch + 1_000 * salt) * _STRIDE
    return list(range(start, start + rows))


def expected(epochs: range, rows: int) -> Mapping[int, list[int]]:
    """Epoch → ids."""
    return {epoch: ids_of(epoch, rows) for epoch in epochs}


def epoch_of(value: int) -> int:
    """The epoch that a row belongs to."""
    return value // _STRIDE


def batch_of(ids: list[int], width: int = 8) -> pa.RecordBatch:
    """Rows that hardly compress when they are wide."""
    names = [f"{i}" if width <= 8 else f"{i}-{os.urandom(width // 2).hex()}" for i in ids]
    return pa.record_batch([pa.array(ids, pa.int64()), pa.array(names, pa.string())], schema=SCHEMA)


def land(folder: Path, epoch: int, rows: int) -> None:
    """The Parquet file of an epoch, in a folder of its own. Spark takes them in the order of their times."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"f{epoch:04}.parquet"
    pq.write_table(pa.Table.from_batches([batch_of(ids_of(epoch, rows))]), path)
    os.utime(path, times=(_LANDED_AT + epoch,) * 2)
