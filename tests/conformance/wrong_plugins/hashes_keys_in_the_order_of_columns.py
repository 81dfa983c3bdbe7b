"""The columns of the key are picked out of the schema, so they are hashed in the order that they have there."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from local import bucketing

from laketier import spi
from laketier.bucketing import assigner_for
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_buckets_by_keys_that_are_two_or_null[two-keys]"
SAYS = "the buckets that rows of a split belong to"


class Assigner(spi.BucketAssigner):
    def __init__(self, table: spi.TableDescriptor) -> None:
        assert table.buckets is not None
        keys = tuple(name for name in table.schema.names if name in table.buckets.keys)
        self.own = assigner_for(replace(table, buckets=replace(table.buckets, keys=keys)))

    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        return self.own.assign(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return bucketing("hashes-keys-in-the-order-of-columns", Assigner)
