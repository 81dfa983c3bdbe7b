"""Names that differ by case only are refused as a table is made, after it was made."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "the table db.T2 was refused, and no table is new"


class LateCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        made = super().create_table(path, descriptor)
        names = [str(each) for each in self.list_tables() if str(each).lower() == str(path).lower()]
        if len(names) > 1:
            raise spi.IncompatibleTable(f"the tables {names} differ by case only", fix="Use another name.")
        return made


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("refuses-half-a-table", catalog=LateCatalog)
