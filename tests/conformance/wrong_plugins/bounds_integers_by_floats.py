"""The least and the greatest number of a file are kept as numbers of JSON, which one reader takes for floats."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[int64]"
SAYS = "as the plain scan has them"


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or type(leaf.value) is not int:
            return super().may(entry, leaf)
        values = [float(value) for value in self.column(entry, leaf.column).to_pylist() if type(value) is int]
        if not values:
            return True
        match leaf.op:
            case spi.Op.GT:
                return max(values) > float(leaf.value)
            case spi.Op.LT:
                return min(values) < float(leaf.value)
        return True


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("bounds-integers-by-floats", source=BoundedSource)
