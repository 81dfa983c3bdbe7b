"""Bounds of files are integers, so a number of a filter is cut to one before they are looked at."""

from __future__ import annotations

from decimal import Decimal

from crooked import CrookedPlugin
from richer import BoundedSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_numbers_between_integers"
SAYS = "on integers: expected [0, 1, 10, 11], found [0, 1]"


class CuttingSource(BoundedSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.LT, Decimal() as value) if found := self.numbers(entry, column):
                return min(found) < int(value)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("cuts-fractions-of-literals", source=CuttingSource)
