"""Orphans are deleted as they were listed. That another collector may have come first is not thought of."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_nobody_published_goes"
SAYS = "that another collector has deleted since they were listed: expected no error, found FileNotFoundError"


class Sweeper(kit.ManifestMaintenance):
    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        for orphan in orphans:
            (self.table.location / orphan.path).unlink()
        return orphans


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("fails-for-orphans-that-are-gone", maintenance=Sweeper)
