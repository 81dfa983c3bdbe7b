"""A list's values are written as they lie in memory, with offsets that are counted from the first of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_slices_of_lists_and_structs"
SAYS = "in slices"


def rebuilt(array: pa.Array) -> pa.Array:
    if not pa.types.is_list(array.type) or not len(array):
        return array
    offsets = pc.subtract(array.offsets, array.offsets[0])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(offsets, array.values, type=array.type, mask=mask)


class ListingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [rebuilt(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-list-offsets-as-they-are", writer=ListingWriter)
