"""All orphans are deleted that can be, and those are told that come before the first one that can't."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_could_not_be_deleted_is_not_called_gone"
SAYS = "orphans that were deleted, beside one that could not be, and that nobody is told of"


class Maintenance(kit.ManifestMaintenance):
    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        gone = {orphan.path for orphan in super().remove_orphans(orphans)}
        return [*takewhile(lambda orphan: orphan.path in gone, orphans)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-what-went-until-one-stayed", maintenance=Maintenance)
