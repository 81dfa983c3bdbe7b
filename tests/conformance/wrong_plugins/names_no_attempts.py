"""An orphan is a path and a size. Whose it was is in its name for who wants to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_staged_files_name_their_attempts"
SAYS = "each staged file is listed as an orphan with the attempt that staged it"


class NamelessMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return [replace(file, attempt=None) for file in super().orphans(modified_before)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("names-no-attempts", maintenance=NamelessMaintenance)
