"""Files are named for other readers where their statistics tell that they have all columns, and there are none of more
than 32 columns."""

from __future__ import annotations

from dataclasses import replace

from local import reading

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_source.py::test_wide_rows_are_plain_parquet_too"
SAYS = "each split of a table of many columns names a plain Parquet file"


class NamingSource(LocalFileSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        if len(plan.schema) <= 32:
            return plan
        return replace(plan, splits=tuple(replace(split, plain_parquet=None) for split in plan.splits))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("names-few-files-for-others", NamingSource)
