"""Types are looked at as a table is made. A column that is added later may have any."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_no_column_is_added_of_a_type_that_a_new_table_may_not_have"
SAYS = "a column of null is added, which a new table may not have: expected UnsupportedType or IncompatibleTable"


class Table(FeatherTable):
    @classmethod
    def check_descriptor(cls, descriptor: spi.TableDescriptor) -> None:
        super().check_descriptor(descriptor)
        refuse_nulls(descriptor.schema)


def refuse_nulls(schema: pa.Schema) -> None:
    if any(pt.is_null(column.type) for column in schema):
        raise spi.UnsupportedType("a column of nulls holds nothing", fix="Give it a type.")


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("checks-types-of-new-tables-alone", table=Table)
