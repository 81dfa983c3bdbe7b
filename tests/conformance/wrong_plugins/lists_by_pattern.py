"""The tables of a database are found with SQL's LIKE, to which an underscore is any letter."""

from __future__ import annotations

import re

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "the tables of database 'd_' alone are listed"


class LikingCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        like = re.compile((database or "%").replace("_", ".").replace("%", ".*"), re.IGNORECASE)
        return [path for path in super().list_tables() if like.fullmatch(path.database)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-by-pattern", catalog=LikingCatalog)
