"""Metadata that it does not know is none. Of another format's table all files become rows, deleted ones, too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_a_table_of_others_is_not_taken_for_files[delta]"
SAYS = "a table is made of a folder with _delta_log/00000000000000000000.json: expected"


class BlindAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        root = Path(self.catalog.store(path).root)
        for log in root.glob("_delta_log"):
            shutil.move(log, root.parent / ".hidden")
            made = super().adopt(path, **more)
            shutil.move(root.parent / ".hidden", log)
            return made
        return super().adopt(path, **more)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-the-tables-of-others", BlindAdoption)
