"""That a value is not null is looked up in the count of nulls, whatever number of negations is around it."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_within_filters"
SAYS = "rows were read by the filter Not(child=Not(child=Leaf(column='v', op=<Op.IS_NULL: 'is null'>"


class UncountingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        inner = leaf
        while isinstance(inner, spi.Not):
            inner = inner.child
        if leaf is not inner and isinstance(inner, spi.Leaf) and inner.op is spi.Op.IS_NULL:
            column = self.column(entry, inner.column)
            return column.null_count < len(column)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("counts-no-negations", source=UncountingSource)
