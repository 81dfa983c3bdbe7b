"""Delta tables below one warehouse, at ``<warehouse>/<database>/<table>``. Driver."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.types as pt

from laketier.bucketing import assigner_for
from laketier.kit import LocalFolder
from laketier.kit.access import access
from laketier.kit.beside_drops import beside_drops
from laketier.kit.confine import RECORDS
from laketier.kit.durable import make_directories
from laketier.kit.library_errors import in_one_line
from laketier.kit.partition import check_partition_name
from laketier.spi import (
    AddColumn,
    CommitError,
    ConfigError,
    Feature,
    IncompatibleTable,
    LakeCatalog,
    PartitionField,
    RenameColumn,
    SchemaChange,
    SetProperty,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    Transform,
    UnsafeTable,
    UnsupportedType,
    WidenColumn,
    require,
    same_table,
)
from laketier_delta.altering import alter, lacks_invariants, make_durable, name_invariants
from laketier_delta.delta_log import DeltaLog
from laketier_delta.engine import arrow_schema, has_log, log_changed, open_table, panics_as_errors
from laketier_delta.features import FEATURES, FORMAT
from laketier_delta.layout import (
    BUCKETS_PROPERTY,
    PRIMARY_KEY_PROPERTY,
    buckets_from,
    buckets_to_property,
    primary_key_from,
    spec_id_of,
)
from laketier_delta.leftover import is_of_clock_alone, lone_entry, take_back
from laketier_delta.location import LOG, Location
from laketier_delta.log_version import log_bytes, log_version
from laketier_delta.options import DeltaOptions
from laketier_delta.protocol import CHECKPOINT_INTERVAL, RETENTION, check_features, check_properties
from laketier_delta.types import delta_schema

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

log = logging.getLogger(__name__)


class DeltaCatalog(LakeCatalog):
    """The log is the truth: a folder is a table when it has a Delta log."""

    def __init__(self, warehouse: Location, options: DeltaOptions) -> None:
        self._warehouse = warehouse
        self._options = options

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        wanted = self._checked(descriptor)
        location = self._warehouse.table(path)
        return same_table(beside_drops(lambda: self._made(path, location, wanted), location.uri), wanted)

    def _made(self, path: TablePath, location: Location, wanted: TableDescriptor) -> TableInfo:
        try:
            handle = open_table(location)
        except TableNotFound:
            with access("creating the table", where=Path(location.root)):
                self._refuse_other_formats(location)
                if (left := lone_entry(location)) is not None:
                    take_back(left)
                self._create(location, wanted)
            handle = open_table(location)
        else:
            # Who made it may have been killed before it was durable.
            self._make_folders(location)
            make_durable(location, handle.version())
        if lacks_invariants(handle):  # also where the one who created it did not get so far
            name_invariants(location)
            handle = open_table(location)
        return self._info(path, location, handle)

    def load_table(self, path: TablePath) -> TableInfo:
        location = self._warehouse.table(path)
        return self._info(path, location, open_table(location))

    def table_version(self, path: TablePath, known: str | None = None) -> str | None:
        return log_version(self._warehouse.table(path), known)

    def handle_bytes(self, table: TableInfo) -> int | None:
        return None if table.handle is None else log_bytes(self._warehouse.table(table.path), table.handle.version())

    def _info(self, path: TablePath, location: Location, handle: DeltaTable) -> TableInfo:
        metadata = handle.metadata()
        properties = dict(metadata.configuration)
        buckets = buckets_from(properties)
        primary_key = primary_key_from(properties)
        for name in (BUCKETS_PROPERTY, PRIMARY_KEY_PROPERTY):
            properties.pop(name, None)
        descriptor = TableDescriptor(
            arrow_schema(handle),
            tuple(PartitionField(column) for column in metadata.partition_columns),
            buckets,
            primary_key,
            properties=properties,
            comment=metadata.description or None,
        )
        return TableInfo(
            path,
            descriptor,
            str(metadata.id),
            location.uri,
            snapshot_id=handle.version(),
            spec_id=spec_id_of(metadata.partition_columns),
        ).with_handle(handle)

    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        from deltalake import Field

        location = self._warehouse.table(path)

        def add(handle: DeltaTable, properties: CommitProperties) -> bool:
            new = _missing(arrow_schema(handle), _additions(changes), str(path))
            if new:
                check_features(handle, str(path))  # delta-rs ends in an error of its own
                handle.alter.add_columns([Field.from_arrow(field) for field in new], commit_properties=properties)
            return bool(new)

        alter(location, add, "columns could not be added")
        name_invariants(location)
        return self.load_table(path)

    def drop_table(self, path: TablePath) -> None:
        location = self._warehouse.table(path)
        filesystem = location.filesystem
        if not has_log(filesystem, location.root):
            raise TableNotFound("there is no Delta table", where=location.uri)
        location.folder.refuse_tables_below(LOG)
        if not location.is_local:
            # The log goes last: without it, what a drop that was cut off leaves would be no table to drop once more.
            _delete_but_log(location)
            filesystem.delete_dir(location.root)
            return
        try:
            LocalFolder(Path(location.root).parent).remove_folder(path.table)
        except FileNotFoundError as error:
            raise TableNotFound("there is no Delta table any more", where=location.uri) from error

    def list_tables(self, database: str | None = None) -> list[TablePath]:
        filesystem = self._warehouse.filesystem
        databases = [database] if database else _folders(filesystem, self._warehouse.root)
        found = []
        for name in databases:
            for table in _folders(filesystem, f"{self._warehouse.root}/{name}"):
                if not has_log(filesystem, f"{self._warehouse.root}/{name}/{table}"):
                    continue
                # Other tools call tables as they like.
                if TablePath.is_name(name) and TablePath.is_name(table):
                    found.append(TablePath(name, table))
                else:
                    log.warning("the Delta table %a is left out: laketier can't address such a name", f"{name}/{table}")
        return sorted(found)

    def _checked(self, descriptor: TableDescriptor) -> TableDescriptor:
        """The descriptor as the table will have it. Raises what `create_table` does."""
        if RETENTION in descriptor.properties and not self._options.accept_transaction_retention:
            raise UnsafeTable(f"{RETENTION} would make the table forget its pipelines", fix="Leave it out.")
        check_properties(descriptor.properties)
        own = sorted({BUCKETS_PROPERTY, PRIMARY_KEY_PROPERTY} & descriptor.properties.keys())
        if own:  # they say how the table is laid out, in words that nobody has checked
            raise IncompatibleTable(
                f"the table properties {', '.join(own)} are laketier's own",
                fix="Leave them out: lake.bucket-by and the primary key say it.",
            )
        schema = delta_schema(descriptor.schema)
        _check_partitions(descriptor, schema)
        if descriptor.buckets:
            assigner_for(descriptor)
        return replace(descriptor, schema=schema)

    def _create(self, location: Location, descriptor: TableDescriptor) -> None:
        from deltalake import CommitProperties, DeltaTable, Schema
        from deltalake.exceptions import CommitFailedError, DeltaError

        configuration = {CHECKPOINT_INTERVAL: str(self._options.checkpoint_interval), **descriptor.properties}
        if descriptor.buckets:
            configuration[BUCKETS_PROPERTY] = buckets_to_property(descriptor.buckets)
        if descriptor.primary_key:
            configuration[PRIMARY_KEY_PROPERTY] = json.dumps(descriptor.primary_key)
        self._make_folders(location)
        try:
            with panics_as_errors():
                DeltaTable.create(
                    location.uri,
                    Schema.from_arrow(descriptor.schema),
                    partition_by=[field.column for field in descriptor.partition_by],
                    description=descriptor.comment,
                    configuration=configuration,
                    storage_options=location.storage_options,
                    # With retries, delta-rs turns a lost race for version 0 into a second metadata entry.
                    commit_properties=CommitProperties(max_commit_retries=0),
                    raise_if_key_not_exists=False,
                )
        except CommitFailedError:
            pass  # another process created it: what it made is compared next
        except DeltaError as error:
            if not _has_entry(location):
                if log_changed(error):
                    raise TableNotFound(
                        "the table was dropped while it was created", where=location.uri, why=in_one_line(str(error))
                    ) from error
                raise ConfigError(
                    "delta-rs refuses to create the table", where=location.uri, why=in_one_line(str(error))
                ) from error
        except CommitError as error:
            if not descriptor.properties or _has_entry(location):
                raise
            raise ConfigError(
                "delta-rs panicked while it created the table",
                where=location.uri,
                why=error.why,
                fix=f"Leave one of the properties out: {', '.join(sorted(descriptor.properties))}.",
            ) from error
        make_durable(location, 0)

    def _make_folders(self, location: Location) -> None:
        if location.is_local:
            make_directories(location.local(LOG))

    def _refuse_other_formats(self, location: Location) -> None:
        selector = pafs.FileSelector(location.root, allow_not_found=True)
        names = [info.base_name for info in location.filesystem.get_file_info(selector)]
        if names == [RECORDS] and is_of_clock_alone(location):
            return
        if names and LOG not in names:
            raise IncompatibleTable(
                "something that is not a Delta table is there",
                where=location.uri,
                why=f"the folder holds {', '.join(sorted(names)[:3])}",
                fix="Use another table name or warehouse.",
            )


def _check_partitions(descriptor: TableDescriptor, schema: pa.Schema) -> None:
    named = [field.column for field in descriptor.partition_by]
    for field in descriptor.partition_by:
        if field.transform is not Transform.IDENTITY:
            require(
                FORMAT,
                FEATURES,
                Feature.PARTITION_TRANSFORMS,
                fix=f"Add a column for {field} in the query and partition by it.",
            )
        check_partition_name(field.column, quote(field.column, safe=""))
        kind = schema.field(field.column).type
        # delta-rs fails on negative decimals as partition values: it spells them -1.-5.
        if any(refused(kind) for refused in (pt.is_nested, pt.is_floating, pt.is_binary, pt.is_decimal)):
            raise UnsupportedType(
                f"column {field.column!r} is {kind}, which can't be a partition column",
                fix="Partition by a string, integer, boolean, date or timestamp column.",
            )
    # delta-rs creates such a table, and can't open it.
    twice = next((column for column in named if named.count(column) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice!r} is a partition column twice", fix="Name it once.")
    if len(named) == len(schema):
        raise ConfigError("all columns are partition columns", fix="Leave at least one column for the files.")


def _additions(changes: Sequence[SchemaChange]) -> list[AddColumn]:
    """Raises `FeatureNotSupported` for the changes that delta-rs can't make."""
    for change in changes:
        if isinstance(change, WidenColumn):
            require(FORMAT, FEATURES, Feature.WIDEN_TYPE, fix="Widen it with Spark, or tier into a new table.")
        if isinstance(change, RenameColumn):
            require(FORMAT, FEATURES, Feature.RENAME_COLUMN, fix="Tier into a new table.")
        if isinstance(change, SetProperty):
            require(FORMAT, FEATURES, Feature.SET_PROPERTY, fix="Tier into a new table.")
    return [change for change in changes if isinstance(change, AddColumn)]


def _missing(schema: pa.Schema, changes: Sequence[AddColumn], where: str) -> list[pa.Field]:
    """The columns to add. Raises `IncompatibleTable` for those that can't be."""
    new: list[pa.Field] = []
    for change in changes:
        wanted = delta_schema(pa.schema([change.field])).field(0)
        there = [field for field in [*schema, *new] if field.name.lower() == wanted.name.lower()]
        if there and (there[0].name, there[0].type) != (wanted.name, wanted.type):
            raise IncompatibleTable(
                f"column {wanted.name!r} can't be added as {wanted.type}",
                where=where,
                why=f"the table has {there[0].name!r} of {there[0].type}",
                fix="Rename it in the query, or cast it to the table's type.",
            )
        if not wanted.nullable and not there:
            raise IncompatibleTable(
                f"column {wanted.name!r} can't be added as not null",
                where=where,
                why="the existing rows have no value for it",
                fix="Add it as nullable.",
            )
        if not there:
            new.append(wanted)
    return new


def _delete_but_log(location: Location) -> None:
    selector = pafs.FileSelector(location.root, allow_not_found=True)
    for info in location.filesystem.get_file_info(selector):
        if info.base_name == LOG:
            continue
        if info.type is pafs.FileType.Directory:
            location.filesystem.delete_dir(info.path)
        else:
            location.filesystem.delete_file(info.path)


def _has_entry(location: Location) -> bool:
    return DeltaLog(location.filesystem, location.root).commit_info(0) is not None


def _folders(filesystem: pafs.FileSystem, root: str) -> list[str]:
    found = filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True))
    names = [info.base_name for info in found if info.type == pafs.FileType.Directory]
    return [name for name in names if not name.startswith(".") and name != LOG]
