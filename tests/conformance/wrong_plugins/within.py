"""The format of `crooked` whose writer does something to what is within lists and structs, for mistakes in that."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit

Change = Callable[[pa.Array], pa.Array]


def changed_within(column: pa.Array, change: Change) -> pa.Array:
    """A column whose innermost values are others."""
    kind = column.type
    if column.offset or not (pa.types.is_list(kind) or pa.types.is_struct(kind)):
        return column
    if pa.types.is_list(kind):
        items = _each(column.values, change)
        return pa.ListArray.from_arrays(column.offsets, items, type=kind, mask=column.is_null())
    fields = [_each(column.field(number), change) for number in range(kind.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())


def _each(values: pa.Array, change: Change) -> pa.Array:
    return changed_within(values, change) if pa.types.is_nested(values.type) else change(values)


def within(identifier: str, change: Change) -> CrookedPlugin:
    """The plugin."""

    class WithinWriter(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            batch = kit.conform(batch, self._table.schema)
            columns = [changed_within(column, change) for column in batch.columns]
            super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    return CrookedPlugin(identifier, writer=WithinWriter)
