"""Which files the table has is asked in pages of 100. Those of the other pages are taken for orphans."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_many_tasks_are_one_commit"
SAYS = "files of 110 tasks that are called orphans"


class OnePageMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        manifests = self.table.manifests()
        staged = [file for file in self._staged() if file.modified_at < modified_before]
        published = sorted(self.table.published(manifests, manifests.head()[0]))
        return [file for file in staged if file.path not in published[:100]]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("collects-beyond-one-page", maintenance=OnePageMaintenance)
