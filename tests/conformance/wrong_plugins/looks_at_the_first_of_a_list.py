"""Of a list of values the first one is compared with the least and the greatest."""

from __future__ import annotations

from richer import BoundedSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[in]"
SAYS = "rows of the filter 'in'"


class FirstOfListSource(BoundedSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.IN, (int() as first, *_)):
                return self.may(entry, spi.Leaf(column, spi.Op.EQ, first))
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("looks-at-the-first-of-a-list", source=FirstOfListSource)
