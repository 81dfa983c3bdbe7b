"""The evolution of a table's schema when input arrives: create it, check it, follow the source's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.conform import fits
from laketier.kit.nested import rebuilt
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry import Lake
from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    Feature,
    IncompatibleTable,
    PartitionField,
    RenameColumn,
    SchemaChange,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    Token,
    WatermarkLost,
    WidenColumn,
    decide,
    require,
    widens,
)
from laketier.tables.marks import refuse_marked
from laketier.tables.metadata import changed, opened


@dataclass(frozen=True)
class TableLayout:
    """How the rows of a table lie in files, and what tells them apart. With a ``primary_key``, the caller merges rows
    by it; no other rows may come into such a table."""

    partition_by: tuple[PartitionField, ...] = ()
    buckets: BucketSpec | None = None
    primary_key: tuple[str, ...] = ()


def logical_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` without what is encoding only: views and dictionaries become the plain types with the same values.
    No metadata: field ids of an input file are not those of the table."""
    return pa.schema([_logical_field(field) for field in schema])


def _logical_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _logical(field.type), field.nullable)


def _logical(kind: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _logical(kind.value_type)
    if pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_map(kind):  # its key is called key, whatever the input calls it
        return pa.map_(_logical(kind.key_type), _logical_field(kind.item_field), keys_sorted=kind.keys_sorted)
    return rebuilt(kind, _logical_field)


def prepare_table(
    lake: Lake,
    schema: pa.Schema,
    layout: TableLayout | None = None,
    *,
    former_names: Mapping[str, Sequence[str]] | None = None,
    token: Token | None = None,
) -> TableInfo:
    """The table of ``lake.config``, ready for rows of ``schema``: created when missing, with columns added when
    ``mergeSchema`` is set. Driver, once, before the first task.

    ``layout``: the partitions and buckets of a table that is created, where the configuration has none, and its
    primary key. ``former_names``: given (it may be empty), the table follows its source: columns get the source's types
    where these are wider, and its names where the table has one of these instead. Columns that the source has no more
    stay, and get nulls. ``token``: the round that it is for. One that would be refused by a new table makes none.

    Raises `IncompatibleTable` when the input has columns that the table lacks (and mergeSchema is off), or types
    that can't fit, and when the table has another primary key; `ConfigError` for rows without a key into a table that
    has one, and for a key that can't be the table's; `UnsupportedType` and `FeatureNotSupported` from the format on
    creation, and for changes of columns that it can't follow; `WatermarkLost` as `decide` does.
    """
    refuse_marked(schema, where=str(lake.config.table))
    with naming_storage_errors("the table was prepared"):
        return _prepare(lake, logical_schema(schema), layout or TableLayout(), former_names, token)


def _prepare(
    lake: Lake,
    schema: pa.Schema,
    layout: TableLayout,
    former_names: Mapping[str, Sequence[str]] | None,
    token: Token | None,
) -> TableInfo:
    config = lake.config
    catalog = lake.storage.catalog()
    try:
        table = opened(lake)
    except TableNotFound:
        if token is not None:
            _refuse_later_epoch(token, str(config.table))
        descriptor = TableDescriptor(
            _with_key(schema, layout.primary_key),
            config.partition_by or layout.partition_by,
            config.bucket_by or layout.buckets,
            layout.primary_key,
        )
        _refuse_twice(descriptor, str(config.table))
        _check_where_keys_lie(descriptor, str(config.table))
        try:
            return catalog.create_table(config.table, descriptor)
        finally:
            changed(config)
    _check_layout(lake, table)
    if former_names is not None and (changes := _changes(lake, table, schema, former_names)):
        table = altered(lake, changes)
    _check_key(table, layout.primary_key)
    new = [field for field in schema if field.name not in table.schema.names]
    if new and not config.merge_schema:
        raise IncompatibleTable(
            f"the input has columns {[field.name for field in new]}, and the table does not",
            where=str(config.table),
            fix="Set mergeSchema to add them, or drop them from the input.",
        )
    _check_types(lake, table, schema)
    if not new:
        return table
    require(config.format, lake.plugin.features, Feature.ADD_COLUMN)
    return altered(lake, [AddColumn(field.with_nullable(True)) for field in new])


def _refuse_later_epoch(token: Token, where: str) -> None:
    """Raise `WatermarkLost` for a round that no new table takes. No pipeline of a table that is not there can be
    adopted, so the way out begins with a table."""
    try:
        decide(None, token)
    except WatermarkLost as error:
        raise WatermarkLost(
            f"there is no table, but this is epoch {token.epoch} of its pipeline",
            where=where,
            why="the table was dropped, its name, format or warehouse is another one, or it joins a query that has run "
            "before",
            fix="Check the name, the format and the warehouse. For a table that joins later, make it first, by a write "
            f"of no rows without lake.pipeline. {error.fix}",
        ) from None


def _refuse_twice(descriptor: TableDescriptor, where: str) -> None:
    """Raise `ConfigError` for a table that would be laid out by one column as if it were two: some formats make such a
    table, and others, or other readers of it, refuse it later."""
    layouts = {
        "partition": [str(field) for field in descriptor.partition_by],
        "bucket key": [] if descriptor.buckets is None else list(descriptor.buckets.keys),
        "column of the primary key": list(descriptor.primary_key),
    }
    for kind, names in layouts.items():
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"{twice!r} is named twice as a {kind}", where=where, fix="Name it once.")


def altered(lake: Lake, changes: Sequence[SchemaChange]) -> TableInfo:
    """Change the configured table, and let nobody in this process use what was kept of it. Driver. Raises as
    `Lake.alter_table`."""
    try:
        return lake.alter_table(*changes)
    finally:
        changed(lake.config)


def _changes(
    lake: Lake, table: TableInfo, schema: pa.Schema, former_names: Mapping[str, Sequence[str]]
) -> list[SchemaChange]:
    """The columns that have another name or a wider type in the source by now."""
    changes: list[SchemaChange] = []
    there = table.schema.names
    for field in schema:
        before = field.name
        if before not in there:
            known = (name for name in former_names.get(field.name, ()) if name in there and name not in schema.names)
            before = next(known, "")
            if not before:
                continue
            _require(lake, Feature.RENAME_COLUMN, f"column {before!r} is {field.name!r} in the source now")
            changes.append(RenameColumn(before, field.name))
        kind = table.schema.field(before).type
        if widens(kind, field.type):
            _require(lake, Feature.WIDEN_TYPE, f"column {before!r} is {kind}, and {field.type} in the source now")
            changes.append(WidenColumn(field.name, field.type))
    return changes


def _require(lake: Lake, feature: Feature, what: str) -> None:
    config = lake.config
    fix = f"Of {config.table}, {what}: tier into a new table (target), or undo it in the source."
    require(config.format, lake.plugin.features, feature, fix=fix)


def _check_layout(lake: Lake, table: TableInfo) -> None:
    config = lake.config
    actual, wanted = table.descriptor.partition_by, config.partition_by
    if wanted and wanted != actual:
        raise IncompatibleTable(
            f"lake.partition-by is {_spelled(wanted)}, and the table is partitioned by {_spelled(actual) or 'nothing'}",
            where=str(config.table),
            fix="Remove the key: it is for tables that do not exist yet.",
        )
    if config.bucket_by and config.bucket_by != table.descriptor.buckets:
        raise IncompatibleTable(
            f"lake.bucket-by is {config.bucket_by}, and the table has {table.descriptor.buckets or 'no buckets'}",
            where=str(config.table),
            fix="Remove the key: it is for tables that do not exist yet.",
        )


def _with_key(schema: pa.Schema, key: tuple[str, ...]) -> pa.Schema:
    return pa.schema([field.with_nullable(False) if field.name in key else field for field in schema])


def _check_key(table: TableInfo, wanted: tuple[str, ...]) -> None:
    actual, where = table.descriptor.primary_key, str(table.path)
    if actual and not wanted:
        raise ConfigError(
            f"the table has the primary key {_spelled(actual)}, and these rows would be appended to it",
            where=where,
            why="a row whose key exists already would be in the table twice",
            fix="Write to another table, or let a service merge changes into this one (see `primary-key`).",
        )
    if set(actual) != set(wanted):
        raise IncompatibleTable(
            f"the primary key is {_spelled(wanted)}, and the table's is {_spelled(actual) or 'not set'}",
            where=where,
            why="its rows were not merged by this key",
            fix="Use another target; or set `primary-key: []` to append.",
        )
    _check_where_keys_lie(table.descriptor, where)


def _check_where_keys_lie(table: TableDescriptor, where: str) -> None:
    """A key must stay where it is: one that moved to another partition or bucket would be there twice."""
    if not table.primary_key:
        return
    for what, columns in (
        ("partitioned", [field.column for field in table.partition_by]),
        ("bucketed", table.buckets.keys if table.buckets else ()),
    ):
        other = [column for column in columns if column not in table.primary_key]
        if other:
            raise ConfigError(
                f"the table is {what} by {other[0]!r}, which is not part of its primary key",
                where=where,
                why="a row whose key exists already could be written to another place, and be in the table twice",
                fix=f"The primary key is {_spelled(table.primary_key)}: use its columns, or add {other[0]!r} to it.",
            )


def _check_types(lake: Lake, table: TableInfo, schema: pa.Schema) -> None:
    for field in schema:
        index = table.schema.get_field_index(field.name)
        if index >= 0 and not fits(field.type, table.schema.field(index).type):
            raise IncompatibleTable(
                f"column {field.name!r} is {field.type} in the input and {table.schema.field(index).type} in the table",
                where=str(lake.config.table),
                fix="Cast it in the query.",
            )
    absent = [f.name for f in table.schema if not f.nullable and f.name not in schema.names]
    if absent:
        raise IncompatibleTable(
            f"the input lacks columns {absent}, which the table declares not null",
            where=str(lake.config.table),
            fix="Add them to the query.",
        )


def _spelled(fields: tuple[object, ...]) -> str:
    return ", ".join(map(str, fields))
