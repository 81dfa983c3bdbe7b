"""Files are skipped by a greatest text of which 16 letters were kept, as if it were the whole one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[text]"
SAYS = "on string, as the plain scan has them: expected [4, 204], found [204]"


class SkippingSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        return [entry for entry in snapshot.files() if all(self._may(entry, leaf) for leaf in filters)], filters

    def _may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not (isinstance(leaf, spi.Leaf) and leaf.op in (spi.Op.GT, spi.Op.GE, spi.Op.EQ)):
            return True
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            greatest = pc.max(file.read_all()[leaf.column]).as_py()
        return not isinstance(greatest, str) or greatest[:16] >= leaf.value


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin(
        "skips-by-cut-text", {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}, source=SkippingSource
    )
