"""A number of a filter becomes a float of 32 bits, as the column has them, before the bounds of files are looked at."""

from __future__ import annotations

import struct

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_numbers_between_floats"
SAYS = "rows of v < -0.1 on a column of 32 bits: expected [31], found []"


class RoundingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.LT, float() as value) if abs(value) < 1e30:
                rounded = struct.unpack("f", struct.pack("f", value))[0]
                found = [each for each in self.column(entry, column).to_pylist() if type(each) is float]
                return not found or min(found) < rounded
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("rounds-literals-to-floats", source=RoundingSource)
