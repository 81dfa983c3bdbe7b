"""A moment of 0 is false in Python, and counts as none: all that nobody published is listed, however young."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_young_stays"
SAYS = "orphans that are older than the first moment of all: expected [], found [OrphanFile("


class TimelessMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return super().orphans(modified_before or 1 << 60)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-all-orphans-of-the-first-moment", maintenance=TimelessMaintenance)
