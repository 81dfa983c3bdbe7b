"""The least and the greatest value of a file are those of its first batch."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_rows_of_several_batches"
SAYS = "rows were read by the filter n = -9"


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or type(leaf.value) is not int:
            return super().may(entry, leaf)
        chunks = self.column(entry, leaf.column).chunks
        values = [each for each in chunks[0].to_pylist() if type(each) is int] if chunks else []
        if not values:
            return True
        match leaf.op:
            case spi.Op.GT:
                return max(values) > leaf.value
            case spi.Op.LT:
                return min(values) < leaf.value
            case spi.Op.EQ:
                return min(values) <= leaf.value <= max(values)
        return True


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("bounds-by-the-first-batch", source=BoundedSource)
