"""A limit cuts a file where it has been read so far. Rows that others deleted are left out after that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from counts_deleted_rows import Harness as _Harness
from counts_deleted_rows import LeavingSource
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_rows_that_others_deleted_are_gone"
SAYS = "rows of a scan with a limit of 1, of 7 that are left: expected 1, found 0"


class Harness(_Harness):
    pass


class HastySource(LeavingSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(replace(request, limit=None))
        first = plan.splits if request.limit is None else plan.splits[: -(-request.limit // 5)]
        return replace(plan, splits=tuple(replace(split, rows=None, limit=request.limit) for split in first))

    def rows_of(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        left = split.limit
        for batch in Source.read(self, split, schema):
            taken = batch if left is None else batch.slice(0, left)
            left = None if left is None else left - taken.num_rows
            yield taken


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("limits-before-deletes", source=HastySource)
