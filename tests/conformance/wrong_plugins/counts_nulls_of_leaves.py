"""The nulls of a struct are counted where Parquet has them: in its first leaf."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_whether_a_nested_value_is_null"
SAYS = (
    "rows were read by the filter s is not null: expected the ids [0, 1, 4] (all rows, filtered by pyarrow), found [4]"
)


class LeafSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not (isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.NOT_NULL):
            return True
        values = self.column(entry, leaf.column)
        while pa.types.is_struct(values.type):
            values = pc.struct_field(values, 0)
        return bool(values.null_count < len(values))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("counts-nulls-of-leaves", source=LeafSource)
