"""Files are skipped by the least and the greatest text of an order that knows no case."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_text_that_some_orders_take_for_the_same"
SAYS = "rows were read by the filter v < 'a': expected the ids [0, 1] (all rows, filtered by pyarrow), found []"


class CollatedSource(RicherSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        return [entry for entry in kept if all(self._has(entry, leaf) for leaf in filters)], remaining

    def _has(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not (isinstance(leaf, spi.Leaf) and isinstance(leaf.value, str) and leaf.op in (spi.Op.LT, spi.Op.GT)):
            return True
        bounds = pc.min_max(pc.utf8_lower(pc.cast(self.column(entry, leaf.column), pa.string())))
        low, high, value = bounds["min"].as_py(), bounds["max"].as_py(), leaf.value.lower()
        return low is not None and (low < value if leaf.op is spi.Op.LT else high > value)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("skips-by-a-collation", source=CollatedSource)
