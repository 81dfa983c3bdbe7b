"""Files are skipped by their least moment, kept in milliseconds since 1970. The division cuts off digits, and before
1970 that makes the moment a later one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[timestamp-us]"
SAYS = "on timestamp[us], as the plain scan has them"
EPOCH, MILLISECOND = datetime(1970, 1, 1), timedelta(milliseconds=1)
BELOW = (spi.Op.EQ, spi.Op.LT, spi.Op.LE)


class SkippingSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        return [entry for entry in snapshot.files() if all(self._may(entry, leaf) for leaf in filters)], filters

    def _may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        naive = isinstance(leaf, spi.Leaf) and isinstance(leaf.value, datetime) and leaf.value.tzinfo is None
        if not (naive and leaf.op in BELOW):
            return True
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            least = pc.min(file.read_all()[leaf.column]).as_py()
        return least is None or EPOCH + math.trunc((least - EPOCH) / MILLISECOND) * MILLISECOND <= leaf.value


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin(
        "rounds-moments-towards-zero", {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}, source=SkippingSource
    )
