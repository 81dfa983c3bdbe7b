"""Files are skipped by Python's comparisons of decimals, which raise an error for one that is no number."""

from __future__ import annotations

from decimal import Decimal

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_numbers_beyond_decimals"
SAYS = "a column of nine digits is filtered by a number beyond it (Leaf <=): expected rows, found InvalidOperation"


class ComparingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.LE, Decimal() as value):
                numbers = [n for n in self.column(entry, column).to_pylist() if n is not None]
                return any(n <= value for n in numbers)
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("compares-decimals-by-pythons-rules", source=ComparingSource)
