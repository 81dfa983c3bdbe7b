"""What is null is told by the codes of a dictionary alone. Where null is one of its values it becomes a text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_text_in_another_form[dictionary-with-null]"
SAYS = "null among its values: expected ['a', 'b', None, 'b', 'c', 'b'], found ['a', 'b', '', 'b', 'c', 'b']"


class CodingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for place, column in enumerate(batch.columns):
            if pt.is_dictionary(column.type) and pt.is_string(column.type.value_type):
                known = column.dictionary.fill_null("")
                batch = batch.set_column(
                    place, batch.schema.names[place], pa.DictionaryArray.from_arrays(column.indices, known)
                )
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-nulls-of-a-dictionary-for-texts", writer=CodingWriter)
