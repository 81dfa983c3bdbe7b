"""A table is found by its name as it is, and tells the name that databases would give it."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_list"
SAYS = "the names that tables tell, beside the listed ones"


class LowerCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        told = spi.TablePath(path.database.lower(), path.table.lower())
        return replace(super().load_table(path), path=told)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tells-its-name-in-lower-case", catalog=LowerCatalog)
