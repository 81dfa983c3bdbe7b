"""A new schema makes a new description of the table, without a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_after_a_column_was_added"
SAYS = "the primary key after a column was added"


class RemakingCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        altered = super()._apply(table, changes)
        if any(isinstance(change, spi.SetProperty) for change in changes):
            return altered
        return replace(altered, primary_key=())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-keys-when-it-alters", catalog=RemakingCatalog)
