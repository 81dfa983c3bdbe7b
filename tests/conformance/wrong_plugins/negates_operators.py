"""`not f < 1.5` skips files as `f >= 1.5` does. It is true for NaN, which the greatest value of a file leaves out."""

from __future__ import annotations

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = (
    "test_source.py::test_filters_on_nan_infinity_and_zeros[Not(child=Leaf(column='f', op=<Op.LT: '<'>, value=1.5))]"
)
SAYS = "expected ['2.0', 'inf', 'inf', 'nan', 'nan', 'nan'], found ['2.0', 'inf', 'inf', 'nan', 'nan']"


class NegatingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Not(spi.Leaf(column, spi.Op.LT, float() as value)):
                numbers = [n for n in self.column(entry, column).to_pylist() if isinstance(n, float) and n == n]
                return not numbers or max(numbers) >= value
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("negates-operators", source=NegatingSource)
