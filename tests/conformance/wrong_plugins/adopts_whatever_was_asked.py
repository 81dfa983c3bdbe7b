"""A table that is there is the answer, whatever types and partitions this call wanted."""

from __future__ import annotations

from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_another_one_is_asked_for"
SAYS = "a table without partitions is asked for with them: expected IncompatibleTable, and no error"


class PleasingAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        try:
            return super().adopt(path, **more)
        except spi.IncompatibleTable:
            return super().adopt(path)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-whatever-was-asked", PleasingAdoption)
