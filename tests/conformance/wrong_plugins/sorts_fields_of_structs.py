"""Schemas are stored as JSON with sorted keys. The fields of a struct are an object in it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_fields_of_structs_keep_their_order"
SAYS = "the type of a column that was created as"


class SortingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        fields = [field.with_type(ordered(field.type)) for field in descriptor.schema]
        return super().create_table(path, replace(descriptor, schema=pa.schema(fields)))


def ordered(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(ordered(f.type)) for f in sorted(kind.fields, key=lambda f: str(f.name))])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(ordered(kind.value_type)))
    return kind


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sorts-fields-of-structs", catalog=SortingCatalog)
