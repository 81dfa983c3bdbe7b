"""A folder that this user may not list belongs to somebody else, and is passed over, as globs do it."""

from __future__ import annotations

import os

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[tables]"
SAYS = "and who asks for tables, gets no error: expected ['db.t', 'db.t_beside'], found []"


class PoliteCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        try:
            os.listdir(self.warehouse)
        except PermissionError:
            return []
        return super().list_tables(database)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-what-it-may", catalog=PoliteCatalog)
