"""A double is kept as a text of 15 digits, which all tools print. Some need 17."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[float64]"
SAYS = "2 are missing: ['0.30000000000000004'"


class SpellingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        super().write(pa.RecordBatch.from_arrays([_spelled(each) for each in batch.columns], schema=batch.schema))


def _spelled(column: pa.Array) -> pa.Array:
    if not pt.is_float64(column.type):
        return column
    return pa.array([None if value is None else float(f"{value:.15g}") for value in column.to_pylist()], column.type)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("spells-floats-with-fifteen-digits", writer=SpellingWriter)
