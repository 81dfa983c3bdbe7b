"""A new schema makes a new description of the table: of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_leaves_the_rest_as_it_is[plain]"
SAYS = "the properties of a table after add-column, for who changed it"


class RemakingCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        altered = super()._apply(table, changes)
        if any(isinstance(change, spi.SetProperty) for change in changes):
            return altered
        return replace(altered, properties={})


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-properties-when-it-alters", catalog=RemakingCatalog)
