"""The tables of a warehouse: folders ``<database>/<table>`` with a ``table.json``."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from laketier.kit import LocalFolder, TableFolder
from laketier.kit.durable import create_exclusively, fsync_directory, make_directories
from laketier.kit.failpoints import failpoint
from laketier.spi import (
    AddColumn,
    Conflict,
    Feature,
    IncompatibleTable,
    LakeCatalog,
    RenameColumn,
    SchemaChange,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    Transform,
    UnsupportedType,
    host_time,
    new_attempt_id,
    reshaped,
    same_table,
)
from laketier_localfile.access import access
from laketier_localfile.committer import LocalFileState, following, open_finished
from laketier_localfile.features import refuse
from laketier_localfile.layout import IN_PROGRESS, MANIFESTS, SUPERSEDED, TABLE_FILE
from laketier_localfile.log import ROLLUPS, ManifestLog, TableFile
from laketier_localfile.manifest import Manifest
from laketier_localfile.settle import finish
from laketier_localfile.types import check_partition_types, check_types, storable

_OWN_FOLDERS = {IN_PROGRESS, SUPERSEDED, MANIFESTS}
_ALTER_ATTEMPTS = 100


class LocalFileCatalog(LakeCatalog):
    """The catalog is the folder tree itself."""

    def __init__(self, warehouse: Path, manifests_per_rollup: int) -> None:
        self._warehouse = warehouse
        self._manifests_per_rollup = manifests_per_rollup

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        wanted = _checked(descriptor)
        location = self._location(path)
        try:
            found = self.load_table(path)
        except TableNotFound:
            with access("creating the table", location):
                self._create(location, wanted)
            found = self.load_table(path)
        manifests = ManifestLog.open(location)
        if not manifests.current()[1]:
            manifests.sync_names()
        return same_table(found, wanted)

    def load_table(self, path: TablePath) -> TableInfo:
        location = self._location(path)
        manifests = _open(path, location)
        head, settled = manifests.current()
        descriptor = manifests.metadata(head)
        info = TableInfo(path, descriptor, manifests.table_uuid, str(location), head.number)
        # A head that is not settled may be one that somebody went back to, which a state has to say.
        return info.with_handle(LocalFileState(manifests, head, descriptor)) if settled else info

    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        location = self._location(path)
        for attempt in range(_ALTER_ATTEMPTS):
            _open(path, location)
            state = open_finished(location)
            altered = _apply(replace(self.load_table(path), descriptor=state.metadata), changes)
            if altered.schema.equals(state.metadata.schema):
                return self.load_table(path)
            number = state.head.number + 1
            manifest = following(
                state.head, commit_id=new_attempt_id(), kind="alter", metadata=altered, metadata_at=number
            )
            try:
                finish(state.manifests, state.manifests.append(manifest))
            except Conflict:
                if attempt == _ALTER_ATTEMPTS - 1:
                    raise
                continue
            return self.load_table(path)
        raise AssertionError("the loop returns or raises")

    def drop_table(self, path: TablePath) -> None:
        location = self._location(path)
        LocalFolder(location.parent).refuse_links(location.name)
        table_uuid = _open(path, location).table_uuid
        TableFolder.at(location).refuse_tables_below(MANIFESTS)
        # One rename takes the table away from readers and writers; what follows may be interrupted.
        dropped = location.with_name(f".dropped-{location.name}-{table_uuid}")
        try:
            location.rename(dropped)
        except FileNotFoundError as error:
            raise TableNotFound("there is no such table", where=str(path)) from error
        fsync_directory(location.parent)
        failpoint("drop.after_rename")
        shutil.rmtree(dropped)

    def list_tables(self, database: str | None = None) -> list[TablePath]:
        pattern = f"{database if database is not None else '*'}/*/{TABLE_FILE}"
        found = [Path(file).relative_to(self._warehouse).parts for file in self._warehouse.glob(pattern)]
        # Other names are none of ours: a table half dropped, or something else's.
        return sorted(TablePath(*parts[:2]) for parts in found if all(map(TablePath.is_name, parts[:2])))

    def _location(self, path: TablePath) -> Path:
        return self._warehouse / path.database / path.table

    def _create(self, location: Path, descriptor: TableDescriptor) -> None:
        _refuse_foreign(location)
        table = TableFile(uuid.uuid4().hex, self._manifests_per_rollup)
        manifests = ManifestLog(location, table.table_uuid, table.manifests_per_rollup)
        make_directories(location)
        folder = LocalFolder(location)
        folder.make_folders(IN_PROGRESS)
        folder.make_folders(f"{MANIFESTS}/{table.table_uuid}/{ROLLUPS}")
        first = Manifest(
            table_uuid=table.table_uuid,
            number=0,
            previous="",
            at=host_time(),
            commit_id=new_attempt_id(),
            kind="create",
            metadata_at=0,
            metadata=descriptor,
        )
        create_exclusively(manifests.path(0), first.encode())
        failpoint("create.before_table_file")
        try:
            create_exclusively(location / TABLE_FILE, table.encode())
        except FileExistsError:
            # Another process created the table first. Ours was never part of anything.
            shutil.rmtree(manifests.folder, ignore_errors=True)
        else:
            manifests.note_head(manifests.read(0))


def _open(path: TablePath, location: Path) -> ManifestLog:
    try:
        return ManifestLog.open(location)
    except TableNotFound as error:
        raise TableNotFound(
            f"there is no table {path}",
            where=str(location),
            fix="Check lake.warehouse and the name; `laketier status` lists the tables.",
        ) from error


def _checked(descriptor: TableDescriptor) -> TableDescriptor:
    for partition in descriptor.partition_by:
        if partition.transform is not Transform.IDENTITY:
            refuse(
                Feature.PARTITION_TRANSFORMS,
                fix=f"Add a column that holds {partition} to the query, and partition by it.",
            )
        if partition.column.startswith(("_", ".")):
            raise UnsupportedType(
                f"column {partition.column!r} can't be a partition column",
                why="plain readers skip folders that begin with _ or .",
                fix="Rename the column.",
            )
    check_types(descriptor.schema)
    check_partition_types(descriptor)
    return replace(descriptor, schema=storable(descriptor.schema), properties=dict(descriptor.properties))


def _refuse_foreign(location: Path) -> None:
    try:
        names = sorted(set(os.listdir(location)) - _OWN_FOLDERS)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        if not location.exists():
            raise
        raise IncompatibleTable(
            "the table's place is taken by a file", where=str(location), fix="Use another table name."
        ) from error
    if names:
        raise IncompatibleTable(
            "the folder is not empty, and holds no table of this format",
            where=str(location),
            why=f"it contains {', '.join(names[:3])}{', …' if len(names) > 3 else ''}",
            fix="Use another table name, or move these files away: they would be read as rows of the table.",
        )


def _apply(table: TableInfo, changes: Sequence[SchemaChange]) -> TableDescriptor:
    if any(isinstance(change, RenameColumn) for change in changes):
        refuse(Feature.RENAME_COLUMN, fix="Add a column of the new name, or tier into a new table.")
    path = table.path
    schema = reshaped(table, changes)
    check_types(schema)
    for change in changes:
        if not isinstance(change, AddColumn):
            continue
        added = storable(pa.schema([change.field])).field(0)
        check_types(pa.schema([added]))
        if added.name in schema.names:
            existing = schema.field(added.name)
            if not existing.type.equals(added.type):
                raise IncompatibleTable(
                    f"column {added.name!r} is there with type {existing.type}, not {added.type}",
                    where=str(path),
                    fix="Cast it in the query, or add it under another name.",
                )
            continue
        if not added.nullable:
            raise IncompatibleTable(
                f"column {added.name!r} can't be added as not null",
                where=str(path),
                why="rows that are there have no value for it",
                fix="Declare it nullable.",
            )
        schema = schema.append(added)
    return replace(table.descriptor, schema=schema)
