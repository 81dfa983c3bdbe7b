"""A database that is not there has no tables that could be listed: an error of the operating system says so."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_list"
SAYS = "the tables of a database that is not there"


class StrictCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        if database is not None:
            list((Path(str(self.warehouse)) / database).iterdir())
        return super().list_tables(database)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-no-tables-of-no-database", catalog=StrictCatalog)
