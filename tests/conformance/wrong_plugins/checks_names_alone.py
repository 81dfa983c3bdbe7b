"""Looks whether staged files are there, and takes any file for the one that was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Committer

from laketier import kit, spi
from laketier.registry import hookimpl


class CarelessCommitter(Committer):
    def check(self, results: Sequence[spi.WriteResult]) -> None:
        for file in (file for result in results for file in result.files):
            if not Path(self.home, kit.confined(file.path, where=self.home)).exists():
                raise spi.StagedFileLost(f"{file.path} is gone")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-names-alone", committer=CarelessCommitter)
