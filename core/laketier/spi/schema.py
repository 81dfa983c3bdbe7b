"""Schemas: what identifies one, and what may follow another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"


def schema_fingerprint(schema: pa.Schema) -> str:
    """16 hex digits over names, order, types, nullability and Parquet field ids, at every level.

    Other metadata is left out: it changes without changing what a file means. Two schemas with one fingerprint can
    hold each other's files.
    """
    digest = hashlib.sha256()
    for line in _lines(schema, ()):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]


def _lines(fields: pa.Schema | list[pa.Field], path: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        here = (*path, field.name)
        field_id = (field.metadata or {}).get(FIELD_ID, b"").decode()
        children = _children(field.type)
        kind = type(field.type).__name__ if children else str(field.type)
        if pa.types.is_fixed_size_list(field.type):
            kind = f"{kind}[{field.type.list_size}]"
        yield f"{len(path)}\x1f{chr(30).join(here)}\x1f{kind}\x1f{field.nullable}\x1f{field_id}"
        yield from _lines(children, here)


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_field]
    return []


@dataclass(frozen=True)
class AddColumn:
    """A schema change: a nullable column after the last one. Applying it twice is the same as once."""

    field: pa.Field


SchemaChange = AddColumn
"""The changes that `LakeCatalog.alter_table` may be asked for (a union, as the list grows)."""
