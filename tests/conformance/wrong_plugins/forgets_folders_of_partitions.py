"""A new partition is a folder. Its files are synced, and its own name in the folder above is not."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin
from foldered import FolderedWriter, foldered

from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_partitions_survive"
SAYS = "no sync made durable the name warehouse/db/t/name="


class Hasty(FolderedWriter):
    def make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return foldered("forgets-folders-of-partitions", Hasty)
