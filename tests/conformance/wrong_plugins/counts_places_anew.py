"""Rows that others delete are listed by their places in a file. Readers take it in parts, and count in each from 0."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from counts_deleted_rows import Harness as _Harness
from counts_deleted_rows import LeavingSource
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_rows_that_others_deleted_from_a_long_file"
SAYS = "a file of 140000 rows is read from which others deleted rows in several places: expected"
PART = 65_536


class Harness(_Harness):
    """The test's ids are places."""


class AnewSource(LeavingSource):
    def rows_left(self, batch: pa.RecordBatch, gone: pa.Array) -> Iterator[pa.RecordBatch]:
        for start in range(0, batch.num_rows, PART):
            part = batch.slice(start, PART)
            yield part.filter(pc.invert(pc.is_in(pa.array(range(part.num_rows), pa.int64()), gone)))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in Source.read(self, split, schema):
            yield from self.rows_left(batch, self.gone())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("counts-places-anew", source=AnewSource)
