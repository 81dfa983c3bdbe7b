"""Null and anything is taken for null. A file whose rows lack a column is skipped by the negation of a condition of
several columns, of which another one is false."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_a_column_that_came_later"
SAYS = "rows were read by the filter Not(child=And(children=(Leaf("


class StrictSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(spi.And(children)):
                values = [each for each in children if isinstance(each, spi.Leaf) and each.value is not None]
                columns = [self.column(entry, each.column) for each in values]
                return all(column.null_count < len(column) for column in columns)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("takes-null-and-false-for-null", source=StrictSource)
