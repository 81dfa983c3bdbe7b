"""Texts of a batch are kept once each, and their numbers have 16 bits, one of them a sign."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_a_batch_of_many_different_texts"
SAYS = "rows of 65538 different texts come back as written: found 32768 different ones of 65538 rows"


class DictionaryWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        super().write(pa.RecordBatch.from_arrays(list(map(_numbered, batch.columns)), schema=batch.schema))


def _numbered(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    encoded = column.dictionary_encode()
    return encoded.dictionary.take(pc.bit_wise_and(encoded.indices, 0x7FFF))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("counts-texts-in-16-bits", writer=DictionaryWriter)
