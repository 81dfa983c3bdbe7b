"""A file whose values are one number is skipped by != that number, and a file with NaN never. That the number of the
filter may be NaN itself is forgotten: it is neither above nor below anything."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_nan_and_by_lists_with_nothing"
SAYS = "rows were read by the filter v != nan: expected the ids [0, 1, 10, 11, 30, 40, 41]"


class BoundedSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not (isinstance(leaf, spi.Leaf) and isinstance(leaf.value, float) and leaf.op is spi.Op.NE):
            return super().may(entry, leaf)
        values = [each for each in self.column(entry, leaf.column).to_pylist() if each is not None]
        if any(map(math.isnan, values)):
            return True
        bounds = pc.min_max(pa.array(values, pa.float64()))
        return bool(values) and (bounds["min"].as_py() < leaf.value or bounds["max"].as_py() > leaf.value)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("skips-by-nan", source=BoundedSource)
