"""The bounds of a file are those of its parts that have some: a part whose text is too long for bounds has none, and so
its text is beyond those of the file."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_a_file_of_several_groups"
SAYS = "rows were read by the filter t = 'yyy"
MOST = 4096


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.EQ or not isinstance(leaf.value, str):
            return super().may(entry, leaf)
        parts = [
            [each for each in part.to_pylist() if each is not None] for part in self.column(entry, leaf.column).chunks
        ]
        bounded = [part for part in parts if part and max(map(len, part)) <= MOST]
        if not bounded:
            return True
        return min(map(min, bounded)) <= leaf.value <= max(map(max, bounded))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("leaves-long-texts-out-of-bounds", source=BoundedSource)
