"""A table that was created is taken for one of files that lay there: is it not a table of this folder, too?"""

from __future__ import annotations

from typing import Any

from local import adopting

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.adoption import LocalFileAdoption

CAUGHT_BY = "test_adoption.py::test_a_table_is_not_made_of_a_table"
SAYS = "a table is made of the files of one that laketier made: expected IncompatibleTable, and no error"


class AnyTableAdoption(LocalFileAdoption):
    def adopt(self, path: spi.TablePath, **more: Any) -> spi.AdoptedTable:
        try:
            info = self.catalog.load_table(path)
        except spi.TableNotFound:
            return super().adopt(path, **more)
        return spi.AdoptedTable(table=info, files=0, rows=0, bytes=0, made=False)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return adopting("adopts-tables", AnyTableAdoption)
