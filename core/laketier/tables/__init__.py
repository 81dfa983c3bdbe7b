"""One lake table: opened, prepared, evolved, planned and scanned; it may use `spi`, `kit`, `config`, `bucketing`,
`registry` and `codecs`."""

from laketier.tables.content import plan_content
from laketier.tables.evolution import TableLayout, logical_schema, prepare_table
from laketier.tables.grouping import group_splits
from laketier.tables.scan import Scan, plan_scan
from laketier.tables.source import open_source, scan_request

__all__ = [
    "Scan",
    "TableLayout",
    "group_splits",
    "logical_schema",
    "open_source",
    "plan_content",
    "plan_scan",
    "prepare_table",
    "scan_request",
]
