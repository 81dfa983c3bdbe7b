"""An older snapshot is read in the columns that the table has now."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_time_travel.py::test_an_older_snapshot_after_schema_changes[added]"
SAYS = "expected id: int64, name: string, count: int32, found id: int64, name: string, count: int32, more: int64"


class PresentSource(Source):
    def _snapshot(self, request: spi.ScanRequest) -> ManifestSnapshot:
        asked = super()._snapshot(request)
        vars(asked)["descriptor"] = asked.manifests.metadata(asked.head)
        return asked


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-old-rows-in-new-columns", source=PresentSource)
