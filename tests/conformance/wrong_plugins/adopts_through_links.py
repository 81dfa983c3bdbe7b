"""A link is followed: the file behind it is read with the others, wherever it lies."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_a_link_to_others[file]"
SAYS = "a link to somebody else's file: expected OutsideTable, and no error"


class FollowingAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        for file in Path(self.catalog.store(path).root).glob("*.parquet"):
            if file.is_symlink():
                there = file.resolve()
                file.unlink()
                shutil.copy(there, file)
        return super().adopt(path, **more)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-through-links", FollowingAdoption)
