"""Where tables live: create, change, find and drop them. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from laketier.spi.errors import IncompatibleTable
from laketier.spi.schema import AddColumn, RenameColumn, SchemaChange, WidenColumn, widens
from laketier.spi.table import TableDescriptor, TableInfo, TablePath


class LakeCatalog(ABC):
    """The tables of one warehouse. Used by one thread; several processes may use a warehouse at once."""

    @abstractmethod
    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        """Create a table, or return the existing one when it is the same: idempotent, also under a race.

        Raises `IncompatibleTable` when a table with another schema, partitioning or bucketing exists (also when it
        is of another format), `UnsupportedType` for a column that the format would have to change, and
        `FeatureNotSupported` for partitions, buckets or keys that it can't do. Creates the database when missing.
        """

    @abstractmethod
    def load_table(self, path: TablePath) -> TableInfo:
        """The table as it is now, never from a cache. Raises `TableNotFound` or `CorruptTable`."""

    @abstractmethod
    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        """Apply changes atomically, in their order: additions alone, or changes of columns alone, as not every format
        does both in one step. Idempotent: a column that is there with the same type is fine. Raises
        `IncompatibleTable` for a column that is there with another type, or is not nullable, and as `reshaped`;
        `FeatureNotSupported` for a kind of change that the format can't do. Watermarks stay. Files that were staged
        before are refused by their fingerprint when they are to be published."""

    @abstractmethod
    def drop_table(self, path: TablePath) -> None:
        """Remove the table and its data. Raises `TableNotFound`."""

    @abstractmethod
    def list_tables(self, database: str | None = None) -> list[TablePath]:
        """The tables of this format, sorted; of all databases by default."""


def same_table(found: TableInfo, wanted: TableDescriptor) -> TableInfo:
    """``found``, for `LakeCatalog.create_table` to return. Raises `IncompatibleTable` unless it has the schema,
    partitioning and buckets of ``wanted``, which are given as the format would store them, and its primary key, if it
    asks for one."""
    there = found.descriptor
    for what, has, asked in (
        ("schema", there.schema, wanted.schema),
        ("partitioning", there.partition_by, wanted.partition_by),
        ("bucketing", there.buckets, wanted.buckets),
        ("primary key", there.primary_key, wanted.primary_key or there.primary_key),
    ):
        if has != asked:
            raise IncompatibleTable(
                f"the table exists with another {what}",
                where=str(found.path),
                why=f"it has {_shown(has)}, and {_shown(asked)} was asked for",
                fix="Use another name, drop the table first, or add the missing columns with mergeSchema.",
            )
    return found


def reshaped(table: TableInfo, changes: Sequence[SchemaChange]) -> pa.Schema:
    """The schema of ``table`` after those of ``changes`` that are no additions. Each column is where it was, so that
    the two schemas, side by side, say what is left to do. Raises `IncompatibleTable` for a column that is not there, a
    name that is taken, a type that does not hold all values, and for columns of the partitions, buckets or primary key:
    rows that are there were put where the old values and names say."""
    schema = table.schema
    renames = [change for change in changes if isinstance(change, RenameColumn)]
    done = {each.old: each.new for each in renames if each.new in schema.names and each.old not in schema.names}
    for change in changes:
        if isinstance(change, AddColumn) or (isinstance(change, RenameColumn) and change.old in done):
            continue
        name = change.old if isinstance(change, RenameColumn) else done.get(change.name, change.name)
        if name not in schema.names:
            raise IncompatibleTable(f"there is no column {name!r} to change", where=str(table.path))
        index = schema.get_field_index(name)
        field = schema.field(index)
        if isinstance(change, WidenColumn) and field.type.equals(change.type):
            continue
        if name in _laid_out_by(table.descriptor):
            raise IncompatibleTable(
                f"column {name!r} can't be changed",
                where=str(table.path),
                why="the table's rows lie in files by it, as its partition, bucket or key",
                fix="Make a new table with the new column, and tier into that.",
            )
        schema = schema.set(index, _changed(table, schema, field, change))
    return schema


def _laid_out_by(descriptor: TableDescriptor) -> set[str]:
    buckets = descriptor.buckets.keys if descriptor.buckets else ()
    return {*(field.column for field in descriptor.partition_by), *buckets, *descriptor.primary_key}


def _changed(table: TableInfo, schema: pa.Schema, field: pa.Field, change: WidenColumn | RenameColumn) -> pa.Field:
    if isinstance(change, WidenColumn):
        if not widens(field.type, change.type):
            raise IncompatibleTable(
                f"column {field.name!r} is {field.type}, which can't become {change.type}",
                where=str(table.path),
                why="that type does not hold all of its values, or is of another kind",
                fix="Add a column of the new type under another name.",
            )
        return field.with_type(change.type)
    taken = next((n for n in schema.names if n != field.name and n.lower() == change.new.lower()), None)
    if taken is not None:
        raise IncompatibleTable(
            f"column {field.name!r} can't be renamed to {change.new!r}",
            where=str(table.path),
            why=f"there is a column {taken!r} already",
            fix="Use another name, or drop that column first.",
        )
    return field.with_name(change.new)


def _shown(value: object) -> str:
    if isinstance(value, pa.Schema):
        value = tuple(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in value)
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
