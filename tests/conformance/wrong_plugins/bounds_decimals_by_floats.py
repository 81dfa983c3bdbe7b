"""The least and the greatest decimal of a file are kept as numbers of JSON."""

from __future__ import annotations

from decimal import Decimal

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[decimal-38-10]"
SAYS = "as the plain scan has them"


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or not isinstance(leaf.value, Decimal):
            return super().may(entry, leaf)
        values = [float(value) for value in self.column(entry, leaf.column).to_pylist() if value is not None]
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
    return richer("bounds-decimals-by-floats", source=BoundedSource)
