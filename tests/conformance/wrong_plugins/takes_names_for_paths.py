"""A filter is split at its dots before the file is asked: the column of that name is passed over."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_a_name_with_a_dot_is_no_path"
SAYS = "rows were read by the filter s.a = 1: expected the ids [1] (all rows, filtered by pyarrow), found []"


class PathSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not (isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ and "." in leaf.column):
            return True
        name, *path = leaf.column.split(".")
        values = self.column(entry, name)
        for inner in path:
            values = pc.struct_field(values, inner)
        return bool(pc.any(pc.equal(values, pa.scalar(leaf.value, values.type))).as_py())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("takes-names-for-paths", source=PathSource)
