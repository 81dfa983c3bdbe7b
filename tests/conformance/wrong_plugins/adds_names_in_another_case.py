"""A column is there if its name is, letter by letter. `NAME` beside `name` is a table that nobody can describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_that_does_not_fit_is_refused[another-case]"
SAYS = "a column that does not fit is added beside one that does"


class Exact(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        added = [change.field for change in changes if isinstance(change, spi.AddColumn)]
        names = table.schema.names
        if len(added) < len(changes) or any(field.name in names or not field.nullable for field in added):
            return super()._apply(table, changes)
        return replace(table.descriptor, schema=pa.schema([*table.schema, *added]))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("adds-names-in-another-case", catalog=Exact)
