"""How files are cut and named, the same for each format whose files laketier writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import laketier
from laketier.spi import ConfigError

FORMATS = ["localfile", "delta", "iceberg"]
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def options(tmp_path: Path, format: str, **more: Any) -> dict[str, str]:
    keys = {f"lake.{format}.{key.replace('_', '-')}": str(value) for key, value in more.items()}
    return {
        "lake.format": format, "lake.warehouse": str(tmp_path), "lake.table": "db.t", "lake.pipeline": "p", **keys,
    }  # fmt: skip


def hours(*found: int) -> pa.RecordBatch:
    times = [datetime(2026, 11, 24, tzinfo=UTC) + timedelta(hours=hour) for hour in found]
    return pa.record_batch([pa.array(found, pa.int64()), pa.array(times, SCHEMA.field("at").type)], schema=SCHEMA)


@pytest.mark.parametrize("format", FORMATS)
def test_files_end_by_event_time(tmp_path: Path, format: str) -> None:
    keys = options(tmp_path, format, event_time_column="at", target_file_event_seconds=7200)
    with laketier.open_writer(keys, SCHEMA) as writer:
        done = writer.write(0, [hours(0), hours(1), hours(2), hours(3), hours(4)])
    assert (done.files, done.rows) == (3, 5)
    found = duckdb.sql(f"SELECT id FROM read_parquet('{tmp_path}/db/t/**/*.parquet') ORDER BY id").fetchall()
    assert [row[0] for row in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("format", FORMATS)
def test_event_time_of_no_column_is_refused_before_anything_is_written(tmp_path: Path, format: str) -> None:
    keys = options(tmp_path, format, event_time_column="id", target_file_event_seconds=7200)
    with laketier.open_writer(keys, SCHEMA) as writer, pytest.raises(ConfigError, match="of type int64"):
        writer.write(0, [hours(0)])
    assert not list(tmp_path.rglob("*.parquet"))


def test_lance_cuts_its_files_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="target-file-event-seconds"):
        laketier.open_writer(options(tmp_path, "lance", target_file_event_seconds=7200), SCHEMA)
