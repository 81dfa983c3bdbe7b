"""How a table is opened elsewhere is found out once: every table has the line of the first."""

from __future__ import annotations

from collections.abc import Mapping

from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_lines_for_people_read_the_table"
SAYS = "rows that the line for pyarrow of db.other gives"


class Plugin(CrookedPlugin):
    found: Mapping[str, str] = {}

    def open_with(self, table: spi.TableInfo) -> Mapping[str, str]:
        line = f"import pyarrow.dataset; pyarrow.dataset.dataset({table.location!r}, format='feather')"
        self.found = self.found or {"pyarrow": line}
        return self.found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin("gives-one-line-for-all-tables")
