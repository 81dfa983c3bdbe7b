"""`not f > 0` skips files as `f <= 0` does. That NaN is neither is remembered for literals that are floats alone."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_nan_and_by_lists_with_nothing"
SAYS = "value=0)): expected the ids [0, 30] (all rows, filtered by pyarrow), found [30]"


class NegatingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(spi.Leaf(column, spi.Op.GT, int() as value)):
                numbers = [n for n in self.column(entry, column).to_pylist() if isinstance(n, float) and n == n]
                return not numbers or min(numbers) <= value
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("negates-orders-by-whole-numbers", source=NegatingSource)
