"""Changes of a table's columns. Driver."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from laketier.spi import AddColumn, IncompatibleTable, LaketierError, SchemaChange, TableInfo, TablePath, reshaped
from laketier_iceberg.connection import CatalogSettings, sync_embedded
from laketier_iceberg.descriptions import info_of
from laketier_iceberg.loading import load
from laketier_iceberg.resolution import name_mapping
from laketier_iceberg.table_properties import EXPIRY, TARGET_FILE_SIZE, check_properties, refuse_unopened
from laketier_iceberg.types import check_types, to_arrow, to_iceberg, type_to_iceberg, without_ids

if TYPE_CHECKING:
    from pyiceberg.table.update.schema import UpdateSchema

_ALTER_ATTEMPTS = 20


def alter(settings: CatalogSettings, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
    """The table after ``changes``, which it may have already; tried again beside other commits. Raises
    `IncompatibleTable` for changes that it can't take."""
    from pyiceberg.exceptions import CommitFailedException

    from laketier_iceberg.commit import schema_change

    for attempt in itertools.count(1):
        table = load(settings, path)
        info = info_of(path, table)
        added = [each for each in changes if isinstance(each, AddColumn) and _is_new(info, each)]
        after = reshaped(info, changes)
        if not added and after.equals(info.schema):
            sync_embedded(settings)  # who made the change may have been killed before
            return info
        name_mapping(table.metadata, str(path))  # which the update has to follow
        check_properties(table.metadata.properties, str(path), unread=(TARGET_FILE_SIZE, *EXPIRY))
        refuse_unopened(table.metadata.properties, table.io, str(path))
        try:
            with schema_change(table) as update:
                for old, new in zip(info.schema, after, strict=True):
                    _reshape(update, old, new)
                for change in added:
                    kind = type_to_iceberg(change.field.type, itertools.count(1))
                    update.add_column((change.field.name,), kind)
        except CommitFailedException:
            if attempt == _ALTER_ATTEMPTS:
                raise
        except ValueError as error:
            clash = any(words in str(error) for words in ("name already exists", "multiple fields for name"))
            if isinstance(error, LaketierError) or not clash:
                raise
            raise IncompatibleTable(
                "a field would have the path of another one, with dots between the names",
                where=str(path),
                why=str(error),
                fix="Choose another name for the column.",
            ) from error
    raise AssertionError("unreachable")


def _reshape(update: UpdateSchema, old: pa.Field, new: pa.Field) -> None:
    if not old.type.equals(new.type):
        check_types(pa.schema([new]))
        kind = type_to_iceberg(new.type, itertools.count(1))
        update.update_column((old.name,), field_type=kind)
    if old.name != new.name:
        update.rename_column((old.name,), new.name)


def _is_new(info: TableInfo, change: AddColumn) -> bool:
    field = change.field
    where = str(info.path)
    wanted = without_ids(to_arrow(to_iceberg(pa.schema([field])))).field(0)
    existing = next((name for name in info.schema.names if name.lower() == field.name.lower()), None)
    if existing is not None:
        there = without_ids(info.schema).field(existing)
        if existing != field.name or there.type != wanted.type or not there.nullable:
            raise IncompatibleTable(
                f"column {existing!r} exists as {there.type}{'' if there.nullable else ' not null'}, "
                f"and {field.name!r} {field.type} was to be added",
                where=where,
                fix="Give the new column another name.",
            )
        return False
    if not field.nullable:
        raise IncompatibleTable(
            f"column {field.name!r} can't be added as not null",
            where=where,
            why="the existing rows have no value for it",
            fix="Add it as a nullable column.",
        )
    return True
