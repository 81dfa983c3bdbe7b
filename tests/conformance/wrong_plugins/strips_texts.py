"""Texts lose the blanks at their ends, as those of a CHAR column do."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_text_of_any_length_and_script"
SAYS = "text of any length and script"


class StrippingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            columns = [pc.utf8_rtrim(c, " ") if pa.types.is_string(c.type) else c for c in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("strips-texts", source=StrippingSource)
