"""Which manifest is the newest is kept, and looked for again once the date of their folder is another one."""

from __future__ import annotations

from typing import Any

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_a_clock_that_stands_still_hides_no_commit"
SAYS = "where all files have one date"


KEPT: dict[str, tuple[int, Any]] = {}


class DatedLog(ManifestLog):
    def current(self) -> tuple[Manifest, bool]:
        date = self.folder.stat().st_mtime_ns
        if self.store.root not in KEPT or KEPT[self.store.root][0] != date:
            KEPT[self.store.root] = date, super().current()
        found: tuple[Manifest, bool] = KEPT[self.store.root][1]
        return found


class DatedTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        log = super().manifests()
        return DatedLog(log.place, log.layout, log.table_uuid, log.manifests_per_rollup)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-at-the-date-of-a-folder", table=DatedTable)
