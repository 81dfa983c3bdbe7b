"""One statement changes the columns and properties of tables in a database, and forgets to say of which table."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_neighbours.py::test_a_changed_table_is_changed_alone"
SAYS = "add-column of db.one, and what db.two is"


class AllCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        for each in self.list_tables():
            if each != path:
                super().alter_table(each, changes)
        return super().alter_table(path, changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("alters-all-tables", catalog=AllCatalog)
