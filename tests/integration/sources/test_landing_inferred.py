"""A landing zone whose columns nobody gives: they are those of several files, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import ConfigError
from landing import land_bytes, log_of, rows

ALL = {"format": "parquet", "infer-files": 0}


def put(zone: Path, name: str, at: float, **columns: Any) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    land_bytes(zone, name, sink.getvalue().to_pybytes(), at=at)


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    zone = tmp_path / "zone"
    put(zone, "1.parquet", 1.0, id=pa.array([1], pa.int32()), total=pa.array([2], pa.int32()))
    put(zone, "2.parquet", 2.0, id=pa.array([2**40]), total=[0.5], note=["new"])
    return zone


def test_columns_are_those_of_all_files(zone: Path) -> None:
    log = log_of(zone, ALL)
    assert log.table.schema == pa.schema([("id", pa.int64()), ("total", pa.float64()), ("note", pa.string())])
    assert rows(log) == [
        {"id": 1, "total": 2.0, "note": None},
        {"id": 2**40, "total": 0.5, "note": "new"},
    ]


def test_they_are_kept_for_good(zone: Path) -> None:
    schema = log_of(zone, ALL).table.schema
    put(zone, "0.parquet", 3.0, other=[1], id=[1])
    assert log_of(zone, ALL).table.schema == schema


def test_of_a_sample(zone: Path) -> None:
    log = log_of(zone, {"format": "parquet", "infer-files": 2})
    assert log.table.schema.names == ["id", "total", "note"]


def test_the_first_file_alone_decides_unless_more_are_asked_for(zone: Path) -> None:
    log = log_of(zone, {"format": "parquet", "extra-columns": "ignore"})
    assert log.table.schema == pa.schema([("id", pa.int32()), ("total", pa.int32())])


def test_files_that_disagree_are_named(zone: Path) -> None:
    put(zone, "3.parquet", 3.0, id=["x"])
    with pytest.raises(ConfigError, match=r"is int32 in '1\.parquet' and string in '3\.parquet'"):
        log_of(zone, ALL)


def test_lines(tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    land_bytes(zone, "1.json", b'{"id": 1, "at": null}\n', at=1.0)
    land_bytes(zone, "2.json", b'{"id": 1.5, "at": "2026-01-01T00:00:00Z"}\n', at=2.0)
    log = log_of(zone, {"format": "json", "infer": True, "infer-files": 0})
    assert log.table.schema == pa.schema([("id", pa.float64()), ("at", pa.timestamp("us", "UTC"))])
    assert len(rows(log)) == 2


@pytest.mark.parametrize("infer_files", [0, 1])
@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("1.csv", b"1,ann\n2,bob\n", "it has no header, as it seems"),
        ("1.json", b"{}\n{}\n", "have no fields"),
        ("1.parquet", None, "have no fields"),
    ],
)
def test_no_row_is_lost_to_a_table_without_its_column(
    tmp_path: Path, name: str, data: bytes | None, says: str, infer_files: int
) -> None:
    zone = tmp_path / "zone"
    if data is None:
        put(zone, name, 1.0)
    else:
        land_bytes(zone, name, data, at=1.0)
    options = {"format": name.partition(".")[2], "infer-files": infer_files}
    with pytest.raises(ConfigError, match=says):
        log_of(zone, options | ({} if data is None else {"infer": True}))
