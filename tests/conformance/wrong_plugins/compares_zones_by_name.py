"""A batch's moments are cast to the table's type where the zones have one name, and taken by their clocks otherwise."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_a_moment_of_another_zone"
SAYS = "one moment that was written in the zones"


class ClockWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for i, field in enumerate(batch.schema):
            kind = field.type
            if field.name not in self._table.schema.names:
                continue
            wanted = self._table.schema.field(field.name).type
            if (
                pa.types.is_timestamp(kind)
                and pa.types.is_timestamp(wanted)
                and kind.tz
                and wanted.tz
                and kind.tz != wanted.tz
            ):
                local = pc.local_timestamp(batch.column(i))
                batch = batch.set_column(i, field.name, pc.assume_timezone(local, wanted.tz))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compares-zones-by-name", writer=ClockWriter)
