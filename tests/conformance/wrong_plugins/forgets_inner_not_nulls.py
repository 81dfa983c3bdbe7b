"""A table's schema is kept by the names and types of its columns. What is not null inside of a type is not kept."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_not_null_inside_of_a_type"
SAYS = "whether nulls may be inside of"


def nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, nullable(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(nullable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable(kind.item_type))
    return kind


class PlainCatalog(kit.ManifestCatalog):
    def _checked(self, descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
        checked = super()._checked(descriptor)
        columns = [pa.field(each.name, nullable(each.type), each.nullable) for each in checked.schema]
        return replace(checked, schema=pa.schema(columns))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-inner-not-nulls", catalog=PlainCatalog)
