"""The least and the greatest value are kept while rows come: a NaN that comes first stays both."""

from __future__ import annotations

import math

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_filters_on_nan_infinity_and_zeros[f >= 0.0]"
SAYS = "on NaN, infinity and zeros"


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or not isinstance(leaf.value, float) or math.isnan(leaf.value):
            return super().may(entry, leaf)
        column = self.column(entry, leaf.column)
        if not pa.types.is_floating(column.type) or column.null_count == len(column):
            return True
        values = [value for value in column.to_pylist() if value is not None]
        low = high = values[0]
        for value in values:
            low, high = (min(low, value)), (max(high, value))
        match leaf.op:
            case spi.Op.GT:
                return high > leaf.value
            case spi.Op.GE:
                return high >= leaf.value
            case spi.Op.LT:
                return low < leaf.value
            case spi.Op.LE:
                return low <= leaf.value
            case spi.Op.EQ:
                return low <= leaf.value <= high
        return True


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("bounds-by-the-first-row", source=BoundedSource)
