"""The least and the greatest moment of a file are kept in milliseconds, as its library's statistics are."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[timestamp-us-utc]"
SAYS = "as the plain scan has them"


class CuttingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or not isinstance(leaf.value, datetime):
            return super().may(entry, leaf)
        column = self.column(entry, leaf.column)
        if not pa.types.is_timestamp(column.type) or column.null_count == len(column):
            return True
        tz = column.type.tz
        coarse = pc.cast(column, pa.timestamp("ms", tz), safe=False)
        bounds = pc.min_max(coarse)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        value = leaf.value
        if (value.tzinfo is None) != (low.tzinfo is None):
            return True
        match leaf.op:
            case spi.Op.GT:
                return bool(high > value)
            case spi.Op.GE:
                return bool(high >= value)
            case spi.Op.EQ:
                return bool(low <= value <= high)
        return True


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("cuts-moments-in-statistics", source=CuttingSource)
