"""A list of values is looked up in a file's values by a thousand at once, and the rest of the list is forgotten."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_lists_of_thousands[numbers]"
SAYS = "rows of a filter by 3501 values and null: expected [2, 10, 12, 22], found [2, 10, 12]"
AT_ONCE = 1000


class BriefSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.IN:
            return not {*leaf.value[:AT_ONCE]}.isdisjoint(self.column(entry, leaf.column).to_pylist())
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("looks-up-a-thousand", source=BriefSource)
