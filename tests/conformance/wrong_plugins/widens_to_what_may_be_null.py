"""A wider type is a new field, and new fields may be null. Which column had to have values is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_leaves_the_rest_as_it_is[plain]"
SAYS = "which of its first columns may be null of a table after widen-type"


class NullableCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        changed = super()._apply(table, changes)
        wider = {change.name for change in changes if isinstance(change, spi.WidenColumn)}
        fields = [field.with_nullable(field.nullable or field.name in wider) for field in changed.schema]
        return replace(changed, schema=pa.schema(fields))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("widens-to-what-may-be-null", catalog=NullableCatalog)
