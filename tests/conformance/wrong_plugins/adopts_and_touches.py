"""Each file that becomes the table's gets the date of its adoption, so whoever syncs by dates copies them all again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_files_become_a_table"
SAYS = "files of others that are gone or other after a table was made of them"


class TouchingAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        made = super().adopt(path, **more)
        for file in Path(self.catalog.store(path).root).glob("*.parquet"):
            os.utime(file)
        return made


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-and-touches", TouchingAdoption)
