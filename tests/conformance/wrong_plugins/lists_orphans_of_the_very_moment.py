"""Orphans from before a moment are those whose date is not after it. One that came in that very moment is young."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_young_stays"
SAYS = "that are not older than that"


class InclusiveMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return super().orphans(modified_before + 1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-orphans-of-the-very-moment", maintenance=InclusiveMaintenance)
