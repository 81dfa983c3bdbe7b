"""To look at the bounds of files, a number of a filter is packed as the column's values are: one beyond all floats of
32 bits can't be."""

from __future__ import annotations

import struct

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_numbers_beyond_floats[float]"
SAYS = "a column of type float is filtered by a number beyond it (Leaf =): expected rows, found OverflowError"


class Packing(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        schema = self.table.open().metadata.schema
        for each in request.filters:
            if isinstance(each, spi.Leaf) and isinstance(each.value, int | float):
                is_short = schema.field(each.column).type == pa.float32()
                self._skipped_by(struct.pack("<f" if is_short else "<d", float(each.value)))
        return super().plan(request)

    def _skipped_by(self, bound: bytes) -> None:
        """No file yet."""


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("packs-literals-as-the-column", FEATURES, source=Packing)
