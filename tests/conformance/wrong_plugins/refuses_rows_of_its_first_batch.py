"""The first batch of a task is looked at, as those after it come from the same query. A null of a later one is stored
as 0."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unstorable.py::test_nulls_where_none_may_be"
SAYS = "a row that is refused alone, as UnstorableRows, comes behind others, in a batch of its own"


class TrustingWriter(Writer):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.looked = False

    def write(self, batch: pa.RecordBatch) -> None:
        if self.looked:
            place = batch.schema.get_field_index("id")
            batch = batch.set_column(place, "id", batch.column(place).fill_null(0))
        self.looked = True
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("refuses-rows-of-its-first-batch", writer=TrustingWriter)
