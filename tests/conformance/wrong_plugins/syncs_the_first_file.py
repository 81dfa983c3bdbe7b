"""A task wrote one file, before there were partitions. The first one is still synced."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin
from foldered import FolderedWriter, foldered

from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_partitions_survive"
SAYS = ".feather: a power cut loses it"


class Hasty(FolderedWriter):
    def sync(self, path: Path, number: int) -> None:
        if number == 0:
            super().sync(path, number)
        else:
            durable.fsync_directory(path.parent)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return foldered("syncs-the-first-file", Hasty)
