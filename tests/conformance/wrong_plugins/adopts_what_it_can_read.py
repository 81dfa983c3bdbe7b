"""A file that can't be read is left out, as other tools leave one: its rows are missing, and nobody is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_a_file_that_is_none[other]"
SAYS = "a table is made of files of which one can't be read: expected IncompatibleData or CorruptTable, and no error"


class LenientAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        try:
            return super().adopt(path, **more)
        except (spi.IncompatibleData, spi.CorruptTable):
            broken = Path(self.catalog.store(path).root) / "broken.parquet"
            hidden = broken.rename(broken.with_name(".broken"))
            made = super().adopt(path, **more)
            hidden.rename(broken)
            return made


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-what-it-can-read", LenientAdoption)
