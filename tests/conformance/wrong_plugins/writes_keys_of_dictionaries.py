"""Rows may come as dictionaries. Those of the first batch are kept, and the keys of the next ones looked up in them."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_text_in_another_form[dictionary]"
SAYS = "text that was written as dictionary"


class KeyedWriter(Writer):
    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._dictionaries: dict[str, pa.Array] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        for i, field in enumerate(batch.schema):
            if pa.types.is_dictionary(field.type):
                column = batch.column(i)
                first = self._dictionaries.setdefault(field.name, column.dictionary)
                safe = pa.array(
                    [k if k is not None and k < len(first) else None for k in column.indices.to_pylist()], pa.int64()
                )
                batch = batch.set_column(i, field.name, first.take(safe))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-keys-of-dictionaries", writer=KeyedWriter)
