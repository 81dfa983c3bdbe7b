"""A reader takes all files of the folder, also those that no manifest names yet."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_isolation.py::test_what_is_staged_is_not_visible"
SAYS = "rows while others are staged: expected 5 rows, found 15; 10 are not expected"


class GlobbingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        files = sorted(path.name for path in self.table.location.glob("*.feather"))
        splits = tuple(spi.LakeSplit(index=n, payload=kit.ManifestFile(file)) for n, file in enumerate(files))
        return replace(super().plan(request), splits=splits)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("visible-when-staged", source=GlobbingSource)
