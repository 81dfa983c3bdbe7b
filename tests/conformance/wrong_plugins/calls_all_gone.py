"""What was to be deleted is told to be gone."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_could_not_be_deleted_is_not_called_gone"
SAYS = "orphans that `remove_orphans` says are gone, and that are still there"


class SureMaintenance(kit.ManifestMaintenance):
    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        super().remove_orphans(orphans)
        return orphans


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("calls-all-gone", maintenance=SureMaintenance)
