"""What has no key goes to the first bucket, and the function has another one for nulls."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from local import bucketing

from laketier import spi
from laketier.bucketing import assigner_for
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_buckets_by_keys_that_are_two_or_null[nulls]"
SAYS = "the buckets that rows of a split belong to"


class Assigner(spi.BucketAssigner):
    def __init__(self, table: spi.TableDescriptor) -> None:
        assert table.buckets is not None
        self.keys, self.own = table.buckets.keys, assigner_for(table)

    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        found = self.own.assign(batch)
        for key in self.keys:
            found = pc.if_else(pc.is_null(batch[key]), pa.scalar(0, found.type), found)
        return found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return bucketing("puts-nulls-into-the-first-bucket", Assigner)
