"""The numbers of vectors are those of `FixedSizeListArray.values`, which begins with the first row of the whole column,
wherever the slice does."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_slices_of_what_has_parts[vectors]"
SAYS = "vectors of slices of one batch"


class ValuesWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        super().write(pa.RecordBatch.from_arrays([_anew(each) for each in batch.columns], schema=batch.schema))


def _anew(column: pa.Array) -> pa.Array:
    if not pt.is_fixed_size_list(column.type) or column.null_count:
        return column
    return pa.FixedSizeListArray.from_arrays(column.values[: len(column) * column.type.list_size], type=column.type)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-vectors-from-the-first-row", writer=ValuesWriter)
