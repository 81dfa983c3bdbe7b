"""A catalog tells its tables in pages of 100. The first page is taken for all of them."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_list_of_many_tables_is_whole"
SAYS = "the tables of a warehouse of 101"


class OnePageCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        return super().list_tables(database)[:100]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-one-page-of-tables", catalog=OnePageCatalog)
