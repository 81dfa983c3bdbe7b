"""Rows get their buckets before they are fitted to the table. A key that comes as a number of four bytes is hashed as
such, and the table has it with eight."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt
from local import bucketing

from laketier import spi
from laketier.bucketing import assigner_for
from laketier.registry import hookimpl
from laketier_localfile.writer import LocalFileWriter

CAUGHT_BY = "test_layout.py::test_buckets_of_rows_that_come_in_another_type[int-for-bigint]"
SAYS = "the buckets that rows of a split belong to"


class Assigner(spi.BucketAssigner):
    def __init__(self, table: spi.TableDescriptor) -> None:
        self.table = table
        self.came = table.schema

    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        kinds = {field.name: field.type for field in self.came if pt.is_integer(field.type)}
        fields = [field.with_type(kinds.get(field.name, field.type)) for field in batch.schema]
        return assigner_for(replace(self.table, schema=pa.schema(fields))).assign(batch.cast(pa.schema(fields)))


class HastyWriter(LocalFileWriter):
    def write(self, batch: pa.RecordBatch) -> None:
        if isinstance(self._assigner, Assigner):
            self._assigner.came = batch.schema
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return bucketing("buckets-keys-as-they-come", Assigner, HastyWriter)
