"""A map is an object of JSON, whose keys are sorted so that equal maps are equal texts."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_maps_keep_each_entry"
SAYS = "the entries of maps: expected"


class SortingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_map(column.type):
            return column
        maps = [None if each is None else sorted(each, key=repr) for each in column.to_pylist()]
        return pa.array(maps, column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("sorts-entries-of-maps", writer=SortingWriter)
