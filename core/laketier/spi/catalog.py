"""Where tables live: create, change, find and drop them. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from laketier.spi.errors import IncompatibleTable
from laketier.spi.schema import SchemaChange
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
        """Apply changes atomically. Idempotent: a column that is there with the same type is fine. Raises
        `IncompatibleTable` for a column that is there with another type, or is not nullable. Watermarks stay."""

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


def _shown(value: object) -> str:
    if isinstance(value, pa.Schema):
        value = tuple(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in value)
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
