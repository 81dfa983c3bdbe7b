"""The identity of schemas, and the changes from one schema to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi.errors import TableChanged

FIELD_ID = b"PARQUET:field_id"


def schema_fingerprint(schema: pa.Schema) -> str:
    """Compute a fingerprint of a schema: over names, order, types, nullability and Parquet field ids, at every level.
    Other metadata is left out, as it does not change the meaning of a file. A file of one schema fits every table with
    the same fingerprint.

    Args:
        schema: The schema.

    Returns:
        16 hex digits.
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
    """A schema change: add a nullable column after the last one. Idempotent."""

    field: pa.Field


@dataclass(frozen=True)
class WidenColumn:
    """A schema change: give a column a type that holds all of its values (`widens`). Idempotent. Existing files keep
    their type or are rewritten; rows read the same either way."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class RenameColumn:
    """A schema change: rename a column. Its values, position and type stay. Idempotent."""

    old: str
    new: str


@dataclass(frozen=True)
class SetProperty:
    """A change of one property of a table, if it still has the value that the caller saw. Rows, columns, watermarks and
    all other properties stay. Idempotent: a property that has ``value`` already is left as it is.

    Attributes:
        name: The property.
        value: Its new value. None removes it.
        before: The value that it had when the caller looked. None: there was none.
    """

    name: str
    value: str | None
    before: str | None

    def applied_to(self, properties: Mapping[str, str], *, where: str) -> dict[str, str]:
        """Compute the properties of a table after the change. Pure.

        Args:
            properties: Those before it.
            where: The table, for messages.

        Returns:
            All properties.

        Raises:
            TableChanged: The property has neither the value that the caller saw, nor the new one.
        """
        now = properties.get(self.name)
        if now not in (self.before, self.value):
            raise TableChanged(
                f"property {self.name!r} was changed meanwhile; nothing was changed now",
                where=where,
                fix="Look at it, and change it again.",
            )
        others = {name: value for name, value in properties.items() if name != self.name}
        return others if self.value is None else {**others, self.name: self.value}


SchemaChange = AddColumn | WidenColumn | RenameColumn | SetProperty
"""A change for `LakeCatalog.alter_table`."""


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Say whether a type holds every value of another one, and more: integers or floats of more bits, decimals of more
    digits before the point. Never across these kinds, as other readers of a format would refuse it, and never for
    nested types.

    Args:
        old: The present type.
        new: The type to change to.

    Returns:
        Whether ``new`` is wider.
    """
    if pt.is_integer(old) and pt.is_integer(new):
        loses_sign = pt.is_signed_integer(old) and pt.is_unsigned_integer(new)
        return not loses_sign and bool(old.bit_width < new.bit_width)
    if pt.is_floating(old) and pt.is_floating(new):
        return bool(old.bit_width < new.bit_width)
    if pt.is_decimal(old) and pt.is_decimal(new):
        return bool(old.scale == new.scale and old.precision < new.precision)
    return False
