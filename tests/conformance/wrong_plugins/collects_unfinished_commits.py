"""A file is an orphan unless a finished commit names it. One that was cut off in its last
step is none, and every reader sees it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_cut_off.py::test_orphans_beside_a_commit_that_was_cut_off"
SAYS = "and orphans were removed"


class FinishedMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        manifests = self.table.manifests()
        head, finished = manifests.head()
        last = head if finished else manifests.read(head.number - 1)
        published = self.table.published(manifests, last)
        return [file for file in self._staged() if file.path not in published]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("collects-unfinished-commits", maintenance=FinishedMaintenance)
