"""A file's bounds are those of its parts. A part whose texts are too long to keep has none, so it is passed over."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_filters_at_the_edges_of_row_groups[text-below]"
SAYS = "rows are filtered by text < 'b': expected [0], found []"
KEPT = 4_096


class ShortSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.LT or not isinstance(leaf.value, str):
            return super().may(entry, leaf)
        parts = [part.drop_null().to_pylist() for part in self.column(entry, leaf.column).chunks]
        least = [min(texts) for texts in parts if texts and max(map(len, texts)) <= KEPT]
        return not least or min(least) < leaf.value


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("bounds-by-short-groups", source=ShortSource)
