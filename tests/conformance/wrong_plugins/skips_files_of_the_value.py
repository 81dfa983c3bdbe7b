"""A file whose least and greatest value are the same has that value in each row, so `!=` skips it. A NaN is in neither
of the two."""

from __future__ import annotations

import math

from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_files_of_one_value"
SAYS = "rows were read by the filter v != 5.0"


class SkippingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.NE or not isinstance(leaf.value, float):
            return super().may(entry, leaf)
        there = [value for value in self.column(entry, leaf.column).to_pylist() if value is not None]
        values = {value for value in there if not math.isnan(value)}
        return values != {leaf.value}


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("skips-files-of-the-value", source=SkippingSource)
