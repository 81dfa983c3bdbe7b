"""Texts are written as text files are, in which \r\n and \r are the end of a line like \n."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_text_stays_text"
SAYS = "text that looks like something else"


def mended(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    return pc.replace_substring(pc.replace_substring(column, "\r\n", "\n"), "\r", "\n")


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-lines-as-python-does", writer=MendingWriter)
