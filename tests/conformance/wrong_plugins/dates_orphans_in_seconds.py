"""An orphan has its date in seconds, as the file system tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_nobody_published_goes"
SAYS = "an orphan says when it was modified, in ms since the epoch"


class SecondMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return [replace(file, modified_at=file.modified_at // 1000) for file in super().orphans(modified_before)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("dates-orphans-in-seconds", maintenance=SecondMaintenance)
