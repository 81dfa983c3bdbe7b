"""The columns of a file are counted without those inside of lists, which have no bounds. So a column behind a list is
skipped by the bounds of the list's elements."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from crooked import CrookedPlugin
from richer import BoundedSource, richer

from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_whether_a_nested_value_is_null"
SAYS = "rows were read by the filter v = 30"


class MiscountingSource(BoundedSource):
    def numbers(self, entry: FileEntry, name: str) -> list[int]:
        with pa.ipc.open_file(str(Path(self.table.location) / entry.path)) as file:
            there = list(file.schema)
        counted = [field.name for field in there if not pt.is_list(field.type)]
        if name not in counted:
            return []
        column = self.column(entry, there[counted.index(name)].name)
        values = pc.list_flatten(column) if pt.is_list(column.type) else column
        return [value for value in values.to_pylist() if type(value) is int]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("takes-bounds-of-a-list-before", source=MiscountingSource)
