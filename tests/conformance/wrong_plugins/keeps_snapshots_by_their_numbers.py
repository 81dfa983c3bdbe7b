"""A process keeps the snapshots that it looked up, as they never change: by the table's folder and their numbers, which
the next table of this name has, too."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl
from laketier.spi import ScanRequest

CAUGHT_BY = "test_catalog.py::test_drop"
SAYS = 'again.read(columns=("id",), snapshot_id=snapshot)'
_KEPT: dict[tuple[str, int], ManifestSnapshot] = {}


class KeepingSource(Source):
    def _snapshot(self, request: ScanRequest) -> ManifestSnapshot:
        if request.snapshot_id is None:
            return super()._snapshot(request)
        key = self.table.store.root, request.snapshot_id
        if key not in _KEPT:
            _KEPT[key] = super()._snapshot(request)
        return _KEPT[key]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-snapshots-by-their-numbers", source=KeepingSource)
