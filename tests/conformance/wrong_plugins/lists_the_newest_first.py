"""Tables are listed as the disk tells them, the newest first."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_list"
SAYS = "tables are listed in their order"


class UnsortedCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        return super().list_tables(database)[::-1]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-the-newest-first", catalog=UnsortedCatalog)
