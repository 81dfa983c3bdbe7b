"""Whole numbers are hashed as eight bytes, as Iceberg does, so that a column may get a wider type. Fluss gives negative
ones of four bytes another bucket."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt
from local import bucketing

from laketier import spi
from laketier.bucketing import assigner_for
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_buckets_of_each_type[int]"
SAYS = "the buckets that rows of a split belong to"


class Assigner(spi.BucketAssigner):
    def __init__(self, table: spi.TableDescriptor) -> None:
        wide = [each.with_type(pa.int64()) if pt.is_int32(each.type) else each for each in table.schema]
        self.schema = pa.schema(wide)
        self.own = assigner_for(replace(table, schema=self.schema))

    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        return self.own.assign(batch.cast(self.schema))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return bucketing("buckets-by-longs", Assigner)
