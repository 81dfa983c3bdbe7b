"""Orphans are listed, however young they are: whoever deletes them knows how old they have to be."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_nobody_published_goes"
SAYS = "the orphans that are older than an hour"


class AgelessMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return super().orphans(1 << 60)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-orphans-of-all-ages", maintenance=AgelessMaintenance)
