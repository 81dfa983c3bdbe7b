"""A new column comes where its author looks first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_add_a_column"
SAYS = "the columns after one was added"


class FrontCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        altered = super()._apply(table, changes)
        new = [f for f in altered.schema if f.name not in table.schema.names]
        old = [f for f in altered.schema if f.name in table.schema.names]
        return replace(altered, schema=pa.schema([*new, *old])) if len(old) == len(table.schema) else altered


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("adds-columns-in-front", catalog=FrontCatalog)
