"""The least and the greatest decimal of a file go through arithmetic, in the digits that the application has set."""

from __future__ import annotations

from decimal import Decimal

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_applications.py::test_an_application_uses_a_table[digits]"
SAYS = "whose price is = 123456.789012, read where decimals are calculated with four digits"


class RoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or not isinstance(leaf.value, Decimal) or leaf.op is not spi.Op.EQ:
            return super().may(entry, leaf)
        values = [+value for value in self.column(entry, leaf.column).to_pylist() if value is not None]
        return (
            any(value.is_nan() or value.is_infinite() for value in values)
            or not values
            or (min(values) <= leaf.value <= max(values))
        )


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("bounds-decimals-by-the-digits-that-are-set", source=RoundedSource)
