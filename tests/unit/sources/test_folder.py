"""What a folder of Parquet files is, and is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.sources import ParquetFolder
from laketier.spi import ConfigError, ScanRequest


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
