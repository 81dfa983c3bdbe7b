"""Each folder of a database is listed as a table, whatever lies in it."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_what_is_no_table_is_not_listed"
SAYS = "the tables of a warehouse with folders of somebody else's: expected ['db.t'], found"


class FolderCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        found = [place.relative_to(self.warehouse).parts for place in self.warehouse.glob(f"{database or '*'}/*/")]
        return sorted(spi.TablePath(*parts) for parts in found if all(map(spi.TablePath.is_name, parts)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-folders", catalog=FolderCatalog)
