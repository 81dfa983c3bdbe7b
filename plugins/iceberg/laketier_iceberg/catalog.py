"""The tables of one Iceberg catalog."""

from __future__ import annotations

import itertools
import logging
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from laketier.kit.beside_drops import beside_drops
from laketier.kit.looks import is_folder, is_there
from laketier.spi import (
    AddColumn,
    BucketSpec,
    CorruptTable,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    LakeCatalog,
    LaketierError,
    SchemaChange,
    SetProperty,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    require,
    reshaped,
    same_table,
)
from laketier_iceberg.connection import EMBEDDED_FILE, CatalogSettings, connect, naming_catalog_errors, sync_embedded
from laketier_iceberg.features import FEATURES
from laketier_iceberg.leftovers import foreign_in
from laketier_iceberg.locations import Below
from laketier_iceberg.lost import lost_metadata
from laketier_iceberg.moved import refuse_moved
from laketier_iceberg.pointer import current_pointer, metadata_bytes
from laketier_iceberg.resolution import name_mapping, refuse_odd_mapping
from laketier_iceberg.spec import BUCKETS_PROPERTY, FORMAT, bucket_field, fields_of, named_fields, to_spec
from laketier_iceberg.stored import metadata_files
from laketier_iceberg.table_properties import (
    EXPIRY,
    TARGET_FILE_SIZE,
    check_properties,
    refuse_opening,
    refuse_unopened,
)
from laketier_iceberg.types import check_types, to_arrow, to_iceberg, type_to_iceberg, without_ids
from laketier_iceberg.unread import is_unreadable, refusal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.update.schema import UpdateSchema

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

RESERVED = "laketier."
"""Table properties below this prefix are ours."""

CREATED_WITH: dict[str, str] = {
    # Without merging, planning reads one manifest per epoch; without deletion, each epoch leaves a metadata file.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}
"""Properties of new tables, where the descriptor does not say otherwise."""

_ALTER_ATTEMPTS = 20
_LOOKS = 3
"""A table that is dropped, or changed and cleaned up, takes its metadata file away before who asked for it has read it.
The catalog is asked again then."""


def _told(method: Callable[Concatenate[IcebergCatalog, P], R]) -> Callable[Concatenate[IcebergCatalog, P], R]:
    """What the catalog's database says of itself in the words of `naming_catalog_errors`."""

    @wraps(method)
    def told(self: IcebergCatalog, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with naming_catalog_errors(self._settings):
            return method(self, *args, **kwargs)

    return told


class IcebergCatalog(LakeCatalog):
    """A pyiceberg catalog behind the SPI."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings

    @_told
    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        schema = to_iceberg(descriptor.schema, descriptor.primary_key)
        made = beside_drops(lambda: self._made(path, descriptor, schema), str(path))
        return same_table(made, replace(descriptor, schema=to_arrow(schema)))

    def _made(self, path: TablePath, descriptor: TableDescriptor, schema: Schema) -> TableInfo:
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
        from pyiceberg.io import load_file_io

        properties, fields = _properties(descriptor), fields_of(descriptor)
        check_properties(properties, str(path))
        refuse_odd_mapping(properties, str(path))
        try:
            found = self.load_table(path)
            sync_embedded(self._settings)
            return found
        except TableNotFound:
            self._refuse_foreign_folder(path)
        catalog = connect(self._settings)  # makes an embedded one, which must not hide that it was lost
        if self._settings.embedded:  # a server may give credentials for a place, and for each another one
            refuse_unopened(properties, load_file_io(catalog.properties), str(path))
        try:
            if not catalog.namespace_exists((path.database,)):
                catalog.create_namespace((path.database,))
        except Exception:  # of a lost race, too: SQL catalogs answer it with an integrity error of the database
            if not catalog.namespace_exists((path.database,)):
                raise
        try:
            table = catalog.create_table(
                (path.database, path.table),
                schema,
                location=self._location(path),
                partition_spec=to_spec(fields, schema),
                properties=properties,
            )
        except TableAlreadyExistsError:
            return self.load_table(path)
        except NoSuchTableError as error:  # pyiceberg loads what it has created
            raise _not_found(path) from error
        return info_of(path, table)

    @_told
    def load_table(self, path: TablePath) -> TableInfo:
        return info_of(path, load(self._settings, path))

    def table_version(self, path: TablePath, known: str | None = None) -> str | None:
        return current_pointer(self._settings, path)

    def handle_bytes(self, table: TableInfo) -> int | None:
        return metadata_bytes(table)

    @_told
    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        from pyiceberg.exceptions import CommitFailedException

        from laketier_iceberg.commit import schema_change

        if any(isinstance(each, SetProperty) for each in changes):
            require(FORMAT, FEATURES, Feature.SET_PROPERTY, fix="Tier into a new table.")
        for attempt in itertools.count(1):
            table = load(self._settings, path)
            info = info_of(path, table)
            added = [each for each in changes if isinstance(each, AddColumn) and _is_new(info, each)]
            after = reshaped(info, changes)
            if not added and after.equals(info.schema):
                sync_embedded(self._settings)  # who made the change may have been killed before
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

    @_told
    def drop_table(self, path: TablePath) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        from laketier_iceberg.removal import drop

        table = load(self._settings, path)
        catalog = connect(self._settings)
        try:
            drop(catalog, table, own_folder=self._location(path))
        except NoSuchTableError as error:
            raise _not_found(path) from error

    @_told
    def list_tables(self, database: str | None = None) -> list[TablePath]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        if self._settings.embedded and not is_there(self._settings.database):
            return []
        catalog = connect(self._settings)
        namespaces = [(database,)] if database is not None else catalog.list_namespaces()
        found: list[TablePath] = []
        for namespace in namespaces:
            if len(namespace) != 1:
                continue
            try:
                names = [name for name in catalog.list_tables(namespace) if len(name) == 2]
            except NoSuchNamespaceError:
                continue
            for name in names:
                if all(map(TablePath.is_name, name)):
                    found.append(TablePath(*name))
                else:
                    log.warning("%a is not listed: laketier has no such names of tables", ".".join(name))
        return sorted(found)

    def _location(self, path: TablePath) -> str | None:
        """Where a new table goes; None lets the configured catalog choose."""
        return str(Path(self._settings.warehouse) / path.database / path.table) if self._settings.embedded else None

    def _refuse_foreign_folder(self, path: TablePath) -> None:
        location = self._location(path)
        if location is None or not is_there(location):
            return
        if not is_folder(location):
            raise IncompatibleTable(
                f"a file lies in the table's place, {location}",
                where=str(path),
                fix="Choose another table name or warehouse.",
            )
        if odd := foreign_in(Path(location)):
            raise IncompatibleTable(
                f"the folder {location} holds something that is no table of this catalog: {', '.join(odd[:3])}",
                where=str(path),
                fix="Choose another table name or warehouse.",
            )


def load(settings: CatalogSettings, path: TablePath) -> Table:
    """The pyiceberg table, fresh from the catalog. Raises `TableNotFound`, `CorruptTable`, and `FeatureNotSupported` or
    `UnsupportedType` for what is newer than pyiceberg."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    if settings.embedded and not is_there(settings.database):
        raise _absent(settings, path, None, why=f"the warehouse {settings.warehouse} has no {EMBEDDED_FILE}")
    catalog = connect(settings)
    left = _LOOKS
    while True:
        left -= 1
        try:
            with naming_catalog_errors(settings):
                found = catalog.load_table((path.database, path.table))
            refuse_opening(found.metadata.properties, str(path))  # where a catalog of another kind has not
            if settings.embedded:
                refuse_moved(settings.warehouse, path, found.metadata_location)
            return found
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            absent = _absent(settings, path, catalog)
            if left and isinstance(absent, CorruptTable):
                continue  # another process may have made it in between, or be about to drop it
            raise absent from error
        except Exception as error:
            if isinstance(error, LaketierError) or not is_unreadable(error):
                raise
            if not (left and isinstance(error, FileNotFoundError)):
                raise refusal(error, catalog, path, settings.warehouse) from error


def handle_of(settings: CatalogSettings, table: TableInfo) -> Table:
    """The handle that the table was described from; a fresh one, where the description came from another process."""
    handle: Table | None = table.handle
    return load(settings, table.path) if handle is None else handle


def info_of(path: TablePath, table: Table) -> TableInfo:
    """What the SPI says of a table. Raises `UnsupportedType` and `IncompatibleTable` for what it has no word for."""
    metadata = table.metadata
    schema = table.schema()
    bucketed = metadata.properties.get(BUCKETS_PROPERTY)
    partition_by = []
    buckets = None
    for name, field in named_fields(table.spec(), schema):
        if name == bucketed:
            buckets = BucketSpec(field.width or 0, (field.column,), FORMAT)
        else:
            partition_by.append(field)
    current = metadata.current_snapshot()
    return TableInfo(
        path=path,
        descriptor=TableDescriptor(
            schema=to_arrow(schema, where=str(path)),
            partition_by=tuple(partition_by),
            buckets=buckets,
            primary_key=_primary_key(schema),
            properties={k: v for k, v in metadata.properties.items() if not k.startswith(RESERVED)},
            comment=metadata.properties.get("comment"),
        ),
        table_uuid=str(metadata.table_uuid),
        location=metadata.location,
        snapshot_id=None if current is None else current.snapshot_id,
        spec_id=metadata.default_spec_id,
    ).with_handle(table)


def _primary_key(schema: Schema) -> tuple[str, ...]:
    """The identifier fields; none where one of them is inside another column, which no `TableDescriptor` can say."""
    names = {field.field_id: field.name for field in schema.fields}
    ids = schema.identifier_field_ids
    return tuple(names[i] for i in ids) if all(i in names for i in ids) else ()


def _properties(descriptor: TableDescriptor) -> dict[str, str]:
    given = dict(descriptor.properties)
    reserved = sorted(key for key in given if key.startswith(RESERVED))
    if reserved:
        raise IncompatibleTable(f"the properties {reserved} are laketier's own", fix="Leave them out.")
    if given.get("format-version", "2") != "2":
        raise FeatureNotSupported(
            f"format-version {given['format-version']}",
            format=FORMAT,
            reason="pyiceberg writes tables of version 2",
            fix="Leave format-version out.",
        )
    properties: dict[str, str] = {**CREATED_WITH, **given, "format-version": "2"}
    if descriptor.comment is not None:
        properties["comment"] = descriptor.comment
    bucket = bucket_field(descriptor.buckets)
    if bucket is not None:
        properties[BUCKETS_PROPERTY] = bucket.name
    return properties


def _reshape(update: UpdateSchema, old: pa.Field, new: pa.Field) -> None:
    import pyarrow as pa

    if not old.type.equals(new.type):
        check_types(pa.schema([new]))
        kind = type_to_iceberg(new.type, itertools.count(1))
        update.update_column((old.name,), field_type=kind)
    if old.name != new.name:
        update.rename_column((old.name,), new.name)


def _is_new(info: TableInfo, change: AddColumn) -> bool:
    import pyarrow as pa

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


def _absent(
    settings: CatalogSettings, path: TablePath, catalog: Catalog | None, why: str | None = None
) -> TableNotFound | CorruptTable:
    """What to raise for a table that ``catalog`` does not know; None where there is no catalog."""
    place = Path(settings.warehouse, path.database, path.table)
    lost = lost_metadata(place) if settings.embedded else None
    if lost is None:
        return _not_found(path, why)
    with naming_catalog_errors(settings):
        if catalog is not None and _was_renamed(catalog, path, place):
            return _not_found(path, why)
    return CorruptTable(
        "the catalog does not know the table, and its files are there",
        where=str(place),
        why=f"it holds {lost}, of a table that laketier did not drop",
        fix=f"Restore {EMBEDDED_FILE} from a backup, or register that file with the catalog. If another program "
        "dropped the table, or nobody needs its rows, delete the folder.",
    )


def _was_renamed(catalog: Catalog, path: TablePath, place: Path) -> bool:
    """Whether the catalog has a table of another name whose metadata are in the place: they stay where they are."""
    below = Below(str(place))
    others = {**(metadata_files(catalog) or {})}
    others.pop((path.database, path.table), None)  # another process made it meanwhile
    return any(below.path(posixpath.dirname(file)) is not None for file in others.values())


def _not_found(path: TablePath, why: str | None = None) -> TableNotFound:
    return TableNotFound("the table does not exist", where=str(path), why=why, fix="Create it, or check its name.")
