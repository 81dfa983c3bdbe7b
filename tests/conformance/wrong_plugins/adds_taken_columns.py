"""A new table may have no column `_file`, which the format keeps for itself; an old one gets it all the same."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_columns_with_odd_names_are_added"
SAYS = "a column '_file' is added, which no new table may have: expected LaketierError, and no error was raised"


class TakenCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        if "_file" in descriptor.schema.names:
            raise spi.UnsupportedType("the column name '_file' is taken", fix="Use another name.")
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("adds-taken-columns", catalog=TakenCatalog)
