"""Looks whether staged files are there, and takes any file for the one that was written."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_staged_file_that_is_another_one_is_not_published[cut]"
SAYS = "a staged file that is gone or another one is published by the format: expected Refused, and no error was raised"


class CarelessTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        for file in (file for result in results for file in result.files):
            if not (self.location / kit.confined(file.path, where=str(self.location))).exists():
                raise spi.StagedFileLost(f"{file.path} is gone")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-names-alone", table=CarelessTable)
