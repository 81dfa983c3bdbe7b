"""Writers that change what they write, column by column, for mistakes in values."""

from __future__ import annotations

import pyarrow as pa
from feather_lake.plugin import Writer

from laketier import kit


class ChangingWriter(Writer):
    """``change`` is given each column of a batch, and returns it as it is written."""

    def change(self, column: pa.Array) -> pa.Array:
        raise NotImplementedError

    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        columns = [self.change(column).cast(column.type) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
