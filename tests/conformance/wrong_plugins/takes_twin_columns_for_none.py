"""Columns are found by name. Where a batch has a name twice, neither is found, and the column is null."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_what_does_not_fit_is_refused[two-of-one-name]"
SAYS = "a batch that does not fit is written: expected IncompatibleData, and no error was raised"


class LastWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        names = dict(zip(batch.schema.names, batch.columns, strict=True))
        fields = [pa.field(n, c.type) for n, c in names.items()]
        if len(names) < len(batch.schema):
            batch = pa.RecordBatch.from_arrays(list(names.values()), schema=pa.schema(fields))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-twin-columns-for-none", writer=LastWriter)
