"""Columns that the names of folders hold."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from laketier.tables.hive import values_of

VALUES = ["ä", "日本", "é%2F", "%C3", "a/b", "x=y", "a+b", "50%", "a b", "𝄞", "a:b"]


@pytest.mark.parametrize("writer", ["arrow", "duckdb", "polars"])
def test_values_that_others_escaped_come_back(tmp_path: Path, writer: str) -> None:
    """They write a byte of UTF-8 as %XX. As characters of their own, ä became Ã¤ without a word."""
    rows = pa.table({"v": VALUES, "id": range(len(VALUES))})
    if writer == "arrow":
        ds.write_dataset(rows, tmp_path, format="parquet", partitioning=["v"], partitioning_flavor="hive")
    elif writer == "duckdb":
        with duckdb.connect() as connection:
            connection.sql(f"COPY rows TO '{tmp_path}' (FORMAT parquet, PARTITION_BY (v), OVERWRITE_OR_IGNORE)")
    else:
        polars.from_arrow(rows).write_parquet(tmp_path, partition_by="v")
    found = [values_of(str(path.relative_to(tmp_path))) for path in tmp_path.rglob("*.parquet")]
    assert sorted(found) == sorted([("v", value)] for value in VALUES)


def test_what_hive_and_spark_escape_comes_back() -> None:
    """Single characters, and bytes that are no UTF-8."""
    assert values_of("a%3Ab=x%7Fä%2F/f") == [("a:b", "x\x7fä/")]
    assert values_of("k=%E4%/f") == [("k", "ä%")]
