"""Files that are right for whoever wrote them, and strange to whoever reads them: one is told, the others are read."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import BadRecord, ConfigError
from landing import all_of, ids, land, log_of, rows


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path


def land_parquet(zone: Path, name: str, table: pa.Table, at: float) -> None:
    hidden = zone / "t" / f".{name}"
    pq.write_table(table, hidden)
    os.utime(hidden, (at, at))
    hidden.rename(zone / "t" / name)


@pytest.mark.parametrize("year", [2263, 2400])
def test_a_file_dated_beyond_what_64_bits_count_is_read(zone: Path, year: int) -> None:
    """Anybody may give a file any time. One of these kept all the others from being read."""
    path = land(zone, "far.json", 1)
    seconds = (year - 1970) * 31_556_952
    os.utime(path, ns=(0, seconds * 10**9))
    if os.stat(path).st_mtime_ns < 2**63:
        pytest.skip("this file system has no times as late")
    land(zone, "now.json", 2)
    assert sorted(ids(log_of(zone))) == [1, 2]
    land(zone, "later.json", 3)
    log = log_of(zone)
    assert sorted(ids(log)) == [1, 2, 3]
    assert sorted(ids(log, all_of(log, 2))) == [3]


@pytest.mark.parametrize("nested", [False, True])
def test_text_of_parquet_that_is_not_utf8_is_a_bad_file(zone: Path, nested: bool) -> None:
    """The lake refuses such a text, and then the table stopped with all its other files."""

    def table(value: bytes) -> pa.Table:
        text = pa.Array.from_buffers(
            pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(value)]
        )
        return pa.table({"s": pa.StructArray.from_arrays([text], ["inner"]) if nested else text})

    for at, value in enumerate([b"a", b"\xff", b"b"], 1):
        land_parquet(zone, f"{at}.parquet", table(value), at)
    bad: list[BadRecord] = []
    found = rows(log_of(zone, {"format": "parquet"}), on_bad_record=bad.append)
    assert [row["s"] for row in found] == ([{"inner": "a"}, {"inner": "b"}] if nested else ["a", "b"])
    assert [(one.offset, "2.parquet" in one.error, "UTF8" in one.error) for one in bad] == [(1, True, True)]


def test_a_file_with_two_columns_of_one_name_is_told_as_that(zone: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([5]), pa.array([6])], names=["v", "v"])
    land_parquet(zone, "1.parquet", twice, 1)
    with pytest.raises(ConfigError, match=r"1\.parquet, because it has columns \['v'\] twice"):
        log_of(zone, {"format": "parquet"})
    land_parquet(zone, "2.parquet", pa.table({"v": [7]}), 2)
    bad: list[BadRecord] = []
    assert rows(log_of(zone, {"format": "parquet", "columns.v": "int64"}), on_bad_record=bad.append) == [{"v": 7}]
    assert [(one.offset, "has columns ['v'] twice" in one.error) for one in bad] == [(0, True)]
