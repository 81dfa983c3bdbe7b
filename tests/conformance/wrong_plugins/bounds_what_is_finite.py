"""Bounds are numbers, so what is infinite is left out of them as NaN is. Files are passed over that have it."""

from __future__ import annotations

import math

from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_filters_on_nan_infinity_and_zeros[f > 1e+300]"
SAYS = "on NaN, infinity and zeros"


class FiniteSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.GT, float() as value) if numbers := self.finite(entry, column):
                return max(numbers) > value
            case spi.Leaf(column, spi.Op.LT, float() as value) if numbers := self.finite(entry, column):
                return min(numbers) < value
        return super().may(entry, leaf)

    def finite(self, entry: FileEntry, name: str) -> list[float]:
        values = self.column(entry, name).to_pylist()
        return [value for value in values if type(value) is float and math.isfinite(value)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("bounds-what-is-finite", source=FiniteSource)
