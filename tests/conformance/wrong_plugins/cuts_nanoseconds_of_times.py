"""Times of a day are kept in microseconds, as Python has them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_a_rare_type_comes_back_or_is_refused"
SAYS = "values of time64[ns], to the last digit"


def mended(column: pa.Array) -> pa.Array:
    if column.type not in (pa.time64("ns"), pa.duration("ns")):
        return column
    return pc.multiply(pc.divide(column.cast(pa.int64()), 1000), 1000).cast(column.type)


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-nanoseconds-of-times", writer=MendingWriter)
