"""Tables are looked for at any depth, and listed by their last two folders: a copy that lies deeper has a name by which
nothing can be loaded."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_copy_of_a_table_is_listed_where_it_can_be_opened"
SAYS = " is listed, and can't be loaded: TableNotFound"


class DeepCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        files = self.warehouse.rglob(self.table_type.layout.table_file)
        places = [file.relative_to(self.warehouse).parent for file in files]
        found = [spi.TablePath(*place.parts[-2:]) for place in places if len(place.parts) > 1]
        return sorted(path for path in found if database in (None, path.database))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-copies", catalog=DeepCatalog)
