"""Where no orphans are named, all are meant."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_young_stays"
SAYS = "orphans that are gone, of none: expected [], found [OrphanFile("


class EagerMaintenance(kit.ManifestMaintenance):
    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        return super().remove_orphans(orphans or self.orphans(1 << 60))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("removes-all-where-none-is-named", maintenance=EagerMaintenance)
