"""Types are looked at where a column is new. One that becomes wider was looked at when it was narrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_no_column_gets_a_type_that_a_new_table_may_not_have"
SAYS = "which a new table may not have: expected a refusal, and it was done"


class Table(FeatherTable):
    @classmethod
    def check_descriptor(cls, descriptor: spi.TableDescriptor) -> None:
        super().check_descriptor(descriptor)
        refuse_wide(descriptor.schema)


class Catalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        refuse_wide(pa.schema([change.field for change in changes if isinstance(change, spi.AddColumn)]))
        return super()._apply(table, changes)


def refuse_wide(schema: pa.Schema) -> None:
    if any(pt.is_decimal256(column.type) for column in schema):
        raise spi.UnsupportedType("a decimal has no more than 38 digits", fix="Use text.")


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("checks-types-of-new-columns-alone", table=Table, catalog=Catalog)
