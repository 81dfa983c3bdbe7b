"""The columns, partitions and key of a table whose manifests are lost, by what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from laketier.kit.manifests import Manifest
from laketier.spi import CorruptTable, IncompatibleData, PartitionField, TableDescriptor, Transform
from laketier.tables.hive import HivePartitions, values_of
from laketier.tables.inference import SchemaSet
from laketier.tables.promotion import promoted
from laketier_localfile.entries import canonical_text, properties_of
from laketier_localfile.file_formats.interface import FileFormat
from laketier_localfile.layout import bucket_of
from laketier_localfile.looking import LyingFile, only_value
from laketier_localfile.lying import LyingPlace
from laketier_localfile.partitioning import Partitioning
from laketier_localfile.time_pattern import is_below_time

_WIDTHS = {Transform.BUCKET: 1, Transform.TRUNCATE: 1}
_GUESSED = (
    "The columns are those that the text of {name} files looks like. Types that it does not tell, such as those of "
    "decimals, bytes and days, are given by --type."
)


def described(
    place: LyingPlace,
    files: list[LyingFile],
    chosen: FileFormat,
    schemas: SchemaSet,
    newest: Manifest | None,
    primary_key: tuple[str, ...],
    types: Mapping[str, pa.DataType],
) -> tuple[TableDescriptor, tuple[str, ...]]:
    """The table's description, and what there is to say of it, a sentence each. The ``newest`` manifest tells it where
    it can read all ``files``; otherwise these tell what they can. Driver. Raises `CorruptTable` where neither does, and
    `IncompatibleData` for files whose columns have no common type."""
    known = None if newest is None else newest.metadata
    holds = _holds if chosen.tells_types else _names_all
    if known is not None and all(holds(known.schema, schema) for _, schema in schemas.schemas()):
        return (replace(known, primary_key=known.primary_key or primary_key), ())
    told: tuple[str, ...] = ()
    if known is not None and not chosen.tells_types:
        types = {field.name: field.type for field in known.schema} | dict(types)
    hive = _folders_of(files)
    columns = schemas.schema(types) if files else pa.schema([])
    hidden = tuple(name for name in hive.names if _is_hidden(name, columns))
    schema = (hive := hive.without(hidden)).added_to(columns, types)
    if not chosen.tells_types:
        told = (_GUESSED.format(name=chosen.name),)
    if hidden or any(is_below_time(file.path) for file in files):
        lost = "What the table was partitioned by beside columns, such as time, is lost: it has none of that now."
        told = (*told, lost)
    if any(bucket_of(file.path) is not None for file in files):
        told = (*told, "The table had buckets, and what they are of is lost: it has none now.")
    if not primary_key:
        told = (*told, "If the table had a primary key, it has none now: --primary-key gives it one.")
    if not files:
        raise CorruptTable(
            "neither manifests nor data files tell the table's columns", where=place.where, fix="Create it anew."
        )
    fields = [each.with_nullable(each.nullable and each.name not in primary_key) for each in schema]
    in_names = any(name not in file.schema.names for file in files for name in hive.names)
    table = TableDescriptor(
        pa.schema(fields),
        tuple(map(PartitionField, hive.names)),
        primary_key=primary_key,
        properties=properties_of(chosen, in_names=in_names),
    )
    return table, told


def _is_hidden(name: str, columns: pa.Schema) -> bool:
    """Whether it is the name of a partition such as ``hour(ts)``, and so no column."""
    column, _, transform = name.rpartition("_")
    hidden = (each for each in Transform if each is not Transform.IDENTITY)
    known = {PartitionField(column, each, _WIDTHS.get(each)).name for each in hidden}
    return bool(transform) and column in columns.names and name in known and name not in columns.names


def _folders_of(files: list[LyingFile]) -> HivePartitions:
    try:
        return HivePartitions.of([file.path for file in files])
    except IncompatibleData:  # not all lie in such folders, so it was not partitioned by them
        return HivePartitions()


def _holds(table: pa.Schema, file: pa.Schema) -> bool:
    """Whether a table of these columns can read such a file."""
    return all(
        column.name in table.names
        and promoted(column.type, table.field(column.name).type) == table.field(column.name).type
        for column in file
    )


def _names_all(table: pa.Schema, file: pa.Schema) -> bool:
    """The same for files that do not tell their types: they are read as the table's when they are measured."""
    return set(file.names) <= set(table.names)


def value_of(place: LyingPlace, file: LyingFile, field: PartitionField, partitioning: Partitioning) -> str | None:
    """A folder's name may be a digest, so the value is read; files that were adopted may not have it."""
    column = partitioning.schema.field(field.column)
    if column.name in file.schema.names:
        return only_value(place, file, column, lambda found: partitioning.texts_of(field, found.cast(column.type)))
    return canonical_text(dict(values_of(file.path)).get(column.name), column.type)
