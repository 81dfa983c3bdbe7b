"""What is deleted was an orphan when it was listed. It is deleted by its path."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_could_not_be_deleted_is_not_called_gone"
SAYS = "the others go, or it says that it can't: expected no error, found IsADirectoryError"


class TrustingMaintenance(kit.ManifestMaintenance):
    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        for orphan in orphans:
            (self.table.location / orphan.path).unlink(missing_ok=True)
        return orphans


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("removes-what-it-listed-whatever-it-is", maintenance=TrustingMaintenance)
