"""Texts are composed (NFC) when they are written, as the author's database does."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_text_of_any_length_and_script"
SAYS = "text of any length and script"


class ComposingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [pc.utf8_normalize(c, "NFC") if pa.types.is_string(c.type) else c for c in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("composes-texts", writer=ComposingWriter)
