"""A file is skipped where a condition can't hold, so for its negation where the condition can."""

from __future__ import annotations

from richer import BoundedSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[not-in]"
SAYS = "rows of the filter 'not-in'"


class NegatingSource(BoundedSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(child):
                return not self.may(entry, child)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("negates-what-may-be", source=NegatingSource)
