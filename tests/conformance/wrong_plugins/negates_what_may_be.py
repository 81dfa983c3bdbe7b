"""A file is skipped where a condition can't hold, so for its negation where the condition can."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[not-in]"
SAYS = "rows of the filter 'not-in'"


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(child):
                return not self.may(entry, child)
            case spi.Leaf(column, spi.Op.EQ, int() as value) if found := self.numbers(entry, column):
                return min(found) <= value <= max(found)
            case spi.Leaf(column, spi.Op.GT, int() as value) if found := self.numbers(entry, column):
                return max(found) > value
        return super().may(entry, leaf)

    def numbers(self, entry: FileEntry, name: str) -> list[int]:
        return [value for value in self.column(entry, name).to_pylist() if type(value) is int]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("negates-what-may-be", source=BoundedSource)
