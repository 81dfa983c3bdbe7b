"""One null may be a slip, which is stored as 0. A batch with more of them is refused, as if its rows were to blame."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unstorable.py::test_nulls_where_none_may_be"
SAYS = "so some of them are refused alone: found that each of them is taken alone"


class LenientWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        place = batch.schema.get_field_index("id")
        if batch.column(place).null_count < 2:
            batch = batch.set_column(place, "id", batch.column(place).fill_null(0))
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("refuses-rows-for-their-batch", writer=LenientWriter)
