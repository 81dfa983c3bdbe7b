"""A file without the column is skipped by any filter on it: nothing in it can match, except null."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_a_column_that_came_later"
SAYS = "rows were read by the filter more is null: expected the ids [0, 1, 4, 5, 7]"


class HastySource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        return not isinstance(leaf, spi.Leaf) or bool(len(self.column(entry, leaf.column)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("skips-what-has-no-statistics", source=HastySource)
