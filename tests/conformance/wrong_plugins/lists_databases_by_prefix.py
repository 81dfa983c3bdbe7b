"""The tables of a database are those whose names begin with its name."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "the tables of database 'db' alone are listed"


class PrefixCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        return [path for path in super().list_tables() if str(path).startswith(database or "")]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-databases-by-prefix", catalog=PrefixCatalog)
