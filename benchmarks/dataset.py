"""The input of the comparisons: rows of five columns in Parquet files, the same on every machine."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FILES = 8
ROW_GROUP = 250_000

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("region", pa.string()),
        ("customer", pa.string()),
        ("amount", pa.float64()),
    ]
)


def batch(first: int, rows: int) -> pa.RecordBatch:
    """Rows ``first`` to ``first + rows``: keys in order, times nearly so, few regions, many customers."""
    random = np.random.default_rng(first)
    ids = np.arange(first, first + rows, dtype=np.int64)
    at = 1_760_000_000_000_000 + ids * 12_500 + random.integers(0, 5_000_000, rows)
    regions = pa.array([f"region-{i:02d}" for i in range(24)])
    customer = pc.utf8_lpad(pa.array(random.integers(0, 200_000, rows)).cast(pa.string()), 8, "0")
    columns = [
        pa.array(ids),
        pa.array(at).cast(SCHEMA.field("at").type),
        regions.take(pa.array(random.integers(0, 24, rows))),
        pc.binary_join_element_wise("customer", customer, "-"),
        pa.array(np.round(random.gamma(2.0, 40.0, rows), 2)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def folder_of(rows: int, work: Path) -> Path:
    """A folder with ``rows`` rows in `FILES` files, made unless it is there."""
    folder = work / f"input-{rows}"
    done = folder / "_complete"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    bounds = np.linspace(0, rows, FILES + 1).astype(int).tolist()
    for index, (first, end) in enumerate(pairwise(bounds)):
        table = pa.Table.from_batches([batch(first, end - first)])
        pq.write_table(table, folder / f"part-{index}.parquet", compression="zstd", row_group_size=ROW_GROUP)
    done.touch()
    return folder


def files_of(folder: Path) -> list[str]:
    """The data files, in order."""
    return sorted(str(path) for path in folder.glob("*.parquet"))
