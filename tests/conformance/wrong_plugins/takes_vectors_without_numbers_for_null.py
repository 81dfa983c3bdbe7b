"""A vector without numbers has nothing to keep, so it is written as null."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_vectors_without_numbers[vector]"
SAYS = "values of fixed_size_list<item: float>[0] come back as written"


class NullingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_fixed_size_list(column.type) or column.type.list_size:
            return column
        return pa.nulls(len(column), column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-vectors-without-numbers-for-null", writer=NullingWriter)
