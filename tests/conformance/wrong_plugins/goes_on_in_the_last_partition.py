"""A batch without the column of the partitions belongs to where the batch before it went, says the author."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherWriter, richer

from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_partitions_of_rows_that_come_without_them"
SAYS = "rows that came without the column of their partition"


class GoingOnWriter(RicherWriter):
    def write(self, batch: pa.RecordBatch) -> None:
        for name in (field.column for field in self._table.descriptor.partition_by):
            if name not in batch.schema.names and self._parts:
                last = self._parts[-1][name][-1].as_py()
                kind = self._table.schema.field(name).type
                batch = batch.append_column(name, pa.array([last] * len(batch), kind))
        return super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("goes-on-in-the-last-partition", writer=GoingOnWriter)
