"""Lance's own schema: its field ids, in Arrow's schema and out of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children, rebuilt
from laketier.spi.schema import FIELD_ID

if TYPE_CHECKING:
    from lance.schema import LanceSchema


def field_ids(schema: LanceSchema) -> list[tuple[str, int]]:
    """Names and ids of all fields, in preorder."""
    found: list[tuple[str, int]] = []

    def walk(field: Any) -> None:
        found.append((field.name(), field.id()))
        for child in field.children():
            walk(child)

    for field in schema.fields():
        walk(field)
    return found


def column_field_ids(schema: pa.Schema, file_version: str) -> tuple[int, ...]:
    """The field ids that have a column of their own in a data file of ``file_version``, in the file's order; from a
    schema of `with_field_ids`.

    Since 2.1 these are the leaves; 2.0 also gives structs and lists a column. A fixed-size list is a leaf.
    """
    found: list[int] = []

    def walk(field: pa.Field) -> None:
        inside = [] if pt.is_fixed_size_list(field.type) else children(field.type)
        if not inside or file_version == "2.0":
            found.append(int(field.metadata[FIELD_ID]))
        for _, child in inside:
            walk(child)

    for field in schema:
        walk(field)
    return tuple(found)


def with_field_ids(schema: LanceSchema) -> pa.Schema:
    """The Arrow schema, without its own metadata, each field with its Lance id where Parquet's would be, at every
    level: so a column that is dropped and added again, or cast, changes the schema's fingerprint."""
    arrow = schema.to_pyarrow()
    return pa.schema([_with_id(field, node) for field, node in zip(arrow, schema.fields(), strict=True)])


def _with_id(field: pa.Field, node: Any) -> pa.Field:
    metadata = {**(field.metadata or {}), FIELD_ID: str(node.id()).encode()}
    return pa.field(field.name, _type_with_ids(field.type, node), nullable=field.nullable, metadata=metadata)


def _type_with_ids(kind: pa.DataType, node: Any) -> pa.DataType:
    children = node.children()
    if pt.is_struct(kind):
        return pa.struct([_with_id(kind.field(i), child) for i, child in enumerate(children)])
    if pt.is_list(kind):
        return pa.list_(_with_id(kind.value_field, children[0]))
    if pt.is_large_list(kind):
        return pa.large_list(_with_id(kind.value_field, children[0]))
    if pt.is_map(kind):
        key, item = children[0].children()
        return pa.map_(_with_id(kind.key_field, key), _with_id(kind.item_field, item))  # of sorted keys there is none
    return kind


def without_field_ids(schema: pa.Schema) -> pa.Schema:
    """Undo `with_field_ids`: what goes into data files, and what readers get."""
    return pa.schema([_without_id(field) for field in schema])


def _without_id(field: pa.Field) -> pa.Field:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != FIELD_ID}
    return pa.field(field.name, rebuilt(field.type, _without_id), nullable=field.nullable, metadata=metadata or None)
