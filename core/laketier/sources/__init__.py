"""Where data comes from: a folder of Parquet files, or any laketier table. Both are a `laketier.spi.LakeSource`."""

from laketier.sources.content import plan_content
from laketier.sources.folder import ParquetFolder
from laketier.sources.grouping import group_splits
from laketier.sources.scan import Scan, plan_scan
from laketier.sources.table import open_source, scan_request

__all__ = ["ParquetFolder", "Scan", "group_splits", "open_source", "plan_content", "plan_scan", "scan_request"]
