"""A catalog asks its service once for the tables of the warehouse, and knows from then on what it made and dropped
itself."""

from __future__ import annotations

from functools import cached_property

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_two_catalogs_that_stay_open"
SAYS = "the tables for a catalog that was open when another one made the table"


class RememberingCatalog(kit.ManifestCatalog):
    @cached_property
    def _listed(self) -> set[spi.TablePath]:
        return set(super().list_tables())

    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        made = super().create_table(path, descriptor)
        self._listed.add(path)
        return made

    def drop_table(self, path: spi.TablePath) -> None:
        super().drop_table(path)
        self._listed.discard(path)

    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        return sorted(path for path in self._listed if database in (None, path.database))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-what-it-listed-first", catalog=RememberingCatalog)
