"""New columns are collected by name, and added in the order of the names."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_adding_twice_is_the_same_as_once"
SAYS = "the columns after the same columns were added twice"


class SortingCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        if all(isinstance(change, spi.AddColumn) for change in changes):
            changes = sorted(changes, key=lambda change: change.field.name)
        return super().alter_table(path, changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("adds-columns-by-their-names", catalog=SortingCatalog)
