"""A file that an attempt staged is listed from the moment of its date on, in which the attempt may be under way."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_young_stays"
SAYS = "that are not older than that"


class InclusiveMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = super().orphans(modified_before + 1)
        return [file for file in found if file.modified_at < modified_before or file.attempt is not None]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-orphans-of-the-very-moment", maintenance=InclusiveMaintenance)
