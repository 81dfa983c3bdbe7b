"""A file is older than a moment, it is thought, unless it was made after it: so one of the same millisecond is, too."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_cut_off.py::test_orphans_of_a_creation_that_was_cut_off"
SAYS = "is called older than the moment at which it was made"


class MomentMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return super().orphans(modified_before + 1)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("calls-the-moment-older", maintenance=MomentMaintenance)
