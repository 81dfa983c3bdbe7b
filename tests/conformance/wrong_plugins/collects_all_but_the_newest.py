"""A file is an orphan unless the newest snapshot has it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_went_well_leaves_no_orphans"
SAYS = "the orphans of a table after rounds, a refused commit and an overwrite that went well"


class NewestMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        manifests = self.table.manifests()
        live = {entry.path for entry in files_at(manifests, manifests.current()[0].number)}
        old = [file for file in self._staged() if file.modified_at < modified_before]
        return [file for file in old if file.path not in live]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("collects-all-but-the-newest", maintenance=NewestMaintenance)
