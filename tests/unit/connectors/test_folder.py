"""What a folder of Parquet files is, and is not."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.connectors import ParquetFolder
from laketier.spi import ConfigError, IncompatibleTable, ScanRequest


@pytest.mark.parametrize("target", [".", "../elsewhere", "../elsewhere/b.parquet"])
def test_links_are_not_followed(tmp_path: Path, target: str) -> None:
    """A loop would give each row many times, and another folder's files may be nobody's business."""
    for file in ("in/a.parquet", "elsewhere/b.parquet"):
        (tmp_path / file).parent.mkdir()
        pq.write_table(pa.table({"id": [1]}), tmp_path / file)
    link = tmp_path / "in" / ("c.parquet" if target.endswith("parquet") else "c")
    link.symlink_to(target)
    folder = ParquetFolder(str(tmp_path / "in"))
    with pytest.raises(ConfigError, match=f"symbolic links.*{link}|{link}.*symbolic links"):
        folder.plan(ScanRequest())
    link.rename(link.with_name("_hidden"))
    assert sum(split.rows or 0 for split in folder.plan(ScanRequest()).splits) == 1
    (tmp_path / "named").symlink_to("in")
    assert len(ParquetFolder(str(tmp_path / "named")).plan(ScanRequest()).splits) == 1


def test_int96_is_microseconds_of_any_year(tmp_path: Path) -> None:
    moments = [datetime.datetime(year, 12, 31, 23, 59) for year in (1, 1600, 1969, 2024, 9999)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    folder = ParquetFolder(str(tmp_path))
    plan = folder.plan(ScanRequest())
    assert plan.schema == table.schema
    found = [
        row["at"] for split in plan.splits for batch in folder.read(split, plan.schema) for row in batch.to_pylist()
    ]
    assert found == moments


def test_a_table_of_others_is_not_read_as_its_files(tmp_path: Path) -> None:
    """Rows that were deleted would come back."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(IncompatibleTable, match=r"a table of its own.*_delta_log"):
        ParquetFolder(str(tmp_path)).plan(ScanRequest())
