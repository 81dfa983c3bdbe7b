"""Files are skipped by their least moment. A literal is compared by its digits, whatever zone they are of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[timestamp-us-new-york]"
SAYS = "on timestamp[us, tz=America/New_York], as the plain scan has them"


class SkippingSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        return [entry for entry in snapshot.files() if all(self._may(entry, leaf) for leaf in filters)], filters

    def _may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not (isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.LT and isinstance(leaf.value, datetime)):
            return True
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            least = pc.min(file.read_all()[leaf.column]).as_py()
        return least is None or _digits(least.astimezone(UTC)) < _digits(leaf.value)


def _digits(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin(
        "drops-zones-of-literals", {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}, source=SkippingSource
    )
