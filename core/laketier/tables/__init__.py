"""One lake table: opened, prepared, evolved, planned and scanned; it may use `spi`, `kit`, `config`, `bucketing`,
`registry` and `codecs`."""

from laketier.tables.content import plan_content
from laketier.tables.evolution import TableLayout, logical_schema, prepare_table
from laketier.tables.grouping import group_splits
from laketier.tables.metadata import MetadataCache, changed, described, distrust, metadata_cache, opened, trusted
from laketier.tables.scan import Scan, plan_scan
from laketier.tables.source import open_source, scan_request

__all__ = [
    "MetadataCache",
    "Scan",
    "TableLayout",
    "changed",
    "described",
    "distrust",
    "group_splits",
    "logical_schema",
    "metadata_cache",
    "open_source",
    "opened",
    "plan_content",
    "plan_scan",
    "prepare_table",
    "scan_request",
    "trusted",
]
