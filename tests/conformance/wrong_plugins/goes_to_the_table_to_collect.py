"""Orphans are looked for in the folder in which the process is."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the working folder"


class GoingMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        os.chdir(self.table.location)
        return super().orphans(modified_before)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("goes-to-the-table-to-collect", maintenance=GoingMaintenance)
