"""The tables of a database are found by SQL's LIKE, for which a _ is any letter."""

from __future__ import annotations

import re

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_list"
SAYS = "the tables of a database whose name has a _"


class LikeCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        like = re.compile((database or "").replace("_", "."))
        return [path for path in super().list_tables() if database is None or like.fullmatch(path.database)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("matches-names-of-databases", catalog=LikeCatalog)
