"""The least and the greatest decimal of a file are kept in as many digits as a float keeps, each rounded to the nearest
one: the least one up, too."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[decimal-38-10]"
SAYS = "rows of v = Decimal('12345678901234512.5') on decimal128(38, 10), as the plain scan has them"
_TO_DIGITS = Context(prec=15, rounding=ROUND_HALF_EVEN)
_TOO_MUCH = Decimal(10) ** 28


class RoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or not isinstance(leaf.value, Decimal) or leaf.op is not spi.Op.EQ:
            return super().may(entry, leaf)
        values = [_TO_DIGITS.plus(value) for value in self.column(entry, leaf.column).to_pylist() if value is not None]
        if any(abs(value) >= _TOO_MUCH for value in values):
            return True
        return any(values) and min(values) <= leaf.value <= max(values)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("bounds-decimals-by-fifteen-digits", source=RoundedSource)
