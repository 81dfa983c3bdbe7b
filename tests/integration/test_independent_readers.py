"""Tables of each plugin, read back equal by two or more readers that are not ours, through the very lines that
`laketier status` prints. `pytest -rP` shows which."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from laketier.cli.demo.verify import count_with
from laketier_verification.lakes import OURS, append, lake_at, read_all

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("name", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("ratio", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
    ]
)


def some_rows(epoch: int) -> pa.RecordBatch:
    rows = []
    for i in range(epoch * 500, epoch * 500 + 500):
        row = {
            "id": i,
            "small": -(i % 7),
            "name": f"näme {i} 'quoted' \\ \n {chr(0x1F600)}",
            "price": Decimal(i) / 100,
            "ratio": i / 3,
            "flag": i % 2 == 0,
            "day": datetime.date(2026, 1, 1) + datetime.timedelta(days=i % 40),
            "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC)
            + datetime.timedelta(microseconds=i * 1_000_003),
            "raw": bytes([i % 256, 0, 255]),
        }
        if i % 11 == 0:
            row = {"id": i} | {key: None for key in row if key != "id"}
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("format", OURS)
def test_two_other_readers_see_the_same_rows(tmp_path: Path, format: str) -> None:
    lake = lake_at(tmp_path / "lake", format)
    inputs = []
    for epoch in range(3):
        batch = some_rows(epoch)
        append(lake, batch, epoch=epoch)
        append(lake, batch, epoch=epoch)  # a replay
        inputs.append(tmp_path / f"{epoch}.parquet")
        pa.parquet.write_table(pa.Table.from_batches([batch]), inputs[-1])
    info = lake.storage.catalog().load_table(lake.config.table)
    counts = count_with(lake.plugin.open_with(info), [str(path) for path in inputs])
    for count in counts:
        print(f"{format}: {count}")
        assert count.exact, count
    assert len(counts) >= 2
    assert read_all(lake).num_rows == 1500


@pytest.mark.parametrize("format", [name for name in OURS if name != "lance"])
def test_partitioned_tables_as_well(tmp_path: Path, format: str) -> None:
    lake = lake_at(tmp_path / "lake", format, **{"lake.partition-by": "small, day"})
    batch = some_rows(0).slice(0, 60)
    append(lake, batch, epoch=0)
    pa.parquet.write_table(pa.Table.from_batches([batch]), tmp_path / "in.parquet")
    info = lake.storage.catalog().load_table(lake.config.table)
    for count in count_with(lake.plugin.open_with(info), [str(tmp_path / "in.parquet")]):
        assert count.exact, count
