"""A new schema makes a new description of the table, in which what its makers wrote of it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_leaves_the_rest_as_it_is[plain]"
SAYS = "the comment of a table after add-column, for who changed it"


class RemakingCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        altered = super()._apply(table, changes)
        if any(isinstance(change, spi.SetProperty) for change in changes):
            return altered
        return replace(altered, comment=None)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-comments-when-it-alters", catalog=RemakingCatalog)
