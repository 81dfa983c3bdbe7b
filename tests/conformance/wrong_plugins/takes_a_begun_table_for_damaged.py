"""A folder without a table in it is damage, says the catalog. Whoever made the folder was killed before the table."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_a_creation_makes_durable_what_it_finds"
SAYS = "who looks for the table, and then asks for it again, is told"


class StrictCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        try:
            return super().load_table(path)
        except spi.TableNotFound as error:
            if self.location(path).exists():
                raise spi.StorageError("the table has no description", where=error.where) from error
            raise


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-a-begun-table-for-damaged", catalog=StrictCatalog)
