"""Where data comes from: a folder of Parquet files, or any laketier table. Both are a `laketier.spi.LakeSource`."""

from laketier.sources.folder import ParquetFolder
from laketier.sources.grouping import group_splits
from laketier.sources.reading import plan_content, read_split
from laketier.sources.table import open_source, scan_request

__all__ = ["ParquetFolder", "group_splits", "open_source", "plan_content", "read_split", "scan_request"]
