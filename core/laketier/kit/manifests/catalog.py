"""The tables of a warehouse: folders ``<database>/<table>`` with a ``table.json``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from laketier.kit.access import access
from laketier.kit.beside_drops import beside_drops
from laketier.kit.local_store import LocalWarehouse, folder_of
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.manifests.creation import create_manifests
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.storage_errors import naming_storage_errors
from laketier.kit.table_store import TableStore, Warehouse
from laketier.spi.catalog import LakeCatalog, reshaped, same_table
from laketier.spi.errors import (
    Conflict,
    IncompatibleTable,
    StorageError,
    TableError,
    TableNotFound,
)
from laketier.spi.features import Feature
from laketier.spi.schema import AddColumn, RenameColumn, SchemaChange, SetProperty, WidenColumn
from laketier.spi.table import TableDescriptor, TableInfo, TablePath, Transform
from laketier.spi.writer import new_attempt_id

_ALTER_RETRIES = 99
_IN_MEMORY = 8
"""How many times as large as its document a manifest is in memory, or less."""
_OF_CHANGE = {
    AddColumn: Feature.ADD_COLUMN,
    WidenColumn: Feature.WIDEN_TYPE,
    RenameColumn: Feature.RENAME_COLUMN,
    SetProperty: Feature.SET_PROPERTY,
}
_INSTEAD = "Make a new table with the columns as they should be, and tier into that."


@dataclass(frozen=True)
class ManifestCatalog(LakeCatalog):
    """The catalog is the folder tree itself. Driver.

    ``table_type``: the format's `ManifestTable`. ``warehouse``: an absolute path, or another `Warehouse`.
    ``manifests_per_rollup``: of new tables, at least 2; after how many manifests their lists of files are summed up, so
    that reading grows with the logarithm of the history.
    """

    table_type: type[ManifestTable]
    warehouse: Path | Warehouse
    manifests_per_rollup: int = 32

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        wanted = self._checked(descriptor)
        return same_table(beside_drops(lambda: self._made(path, wanted), str(path)), wanted)

    def _made(self, path: TablePath, wanted: TableDescriptor) -> TableInfo:
        store = self.store(path)
        try:
            found = self.load_table(path)
        except TableNotFound:
            with access("creating the table", where=store.root):
                store.refuse_others(self.table_type.layout.own_folders)
                create_manifests(self.table_type, store, wanted, self.manifests_per_rollup)
            found = self.load_table(path)
        manifests = self.table_type(store).manifests()
        if not manifests.current()[1]:
            manifests.sync_names()
        return found

    def load_table(self, path: TablePath) -> TableInfo:
        manifests = self._open(path)
        head, settled = manifests.current()
        descriptor = manifests.metadata(head)
        info = TableInfo(path, descriptor, manifests.table_uuid, manifests.store.root, head.number)
        # A head that is not settled may be one that somebody went back to, which a state has to say.
        return info.with_handle(ManifestState(manifests, head, descriptor)) if settled else info

    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        for _ in range(_ALTER_RETRIES):
            with suppress(Conflict):
                return self._alter(path, changes)
        return self._alter(path, changes)

    def drop_table(self, path: TablePath) -> None:
        self.table_type.require(Feature.DROP_TABLE)
        store, layout = self.store(path), self.table_type.layout
        store.refuse_links("")
        self._open(path)
        try:
            store.drop(layout.folder, layout.table_file)
        except FileNotFoundError as error:
            raise TableNotFound("there is no such table", where=str(path)) from error

    def list_tables(self, database: str | None = None) -> list[TablePath]:
        with naming_storage_errors("tables were listed"):
            found = list(self._warehouse.tables(self.table_type.layout.table_file, database))
        # Other names are none of ours: a table half dropped, or something else's.
        return sorted(TablePath(*names) for names in found if all(map(TablePath.is_name, names)))

    def table_version(self, path: TablePath, known: str | None = None) -> str | None:
        """Reads ``table.json`` and the head file, and no manifest; nothing where all is as it was at ``known``."""
        store = self.store(path)
        try:
            if known is not None and ManifestLog.is_version(known, store, self.table_type.layout):
                return known
            return self.table_type(store).manifests().version()
        except (TableError, OSError, StorageError):
            return None

    def handle_bytes(self, table: TableInfo) -> int | None:
        state = table.handle
        if not isinstance(state, ManifestState):
            return None
        name = state.manifests.name(state.head.number)
        try:
            size = state.manifests.store.sizes([name])[name]
        except (OSError, StorageError):
            return None
        return None if size is None else _IN_MEMORY * size

    def create_of(
        self,
        path: TablePath,
        descriptor: TableDescriptor,
        added: Sequence[FileEntry],
        *,
        origin: str,
        last_look: Callable[[], None],
        after: int = 0,
    ) -> TableInfo:
        """Create a table of files that lie there. All of it or nothing: its first manifest names them, and is the
        table's only when ``table.json`` is. ``last_look`` raises unless the files are still what ``added`` says.
        ``after``: see `create_manifests`. Raises `IncompatibleTable` where another process made a table meanwhile."""
        store = self.store(path)
        wanted = self._checked(descriptor)
        with access("creating the table", where=store.root):
            ours = create_manifests(
                self.table_type,
                store,
                wanted,
                self.manifests_per_rollup,
                added=tuple(added),
                origin=origin,
                last_look=last_look,
                after=after,
            )
        if not ours:
            raise IncompatibleTable(
                "another process made a table of the folder meanwhile", where=store.root, fix="Look at that table."
            )
        return self.load_table(path)

    def store(self, path: TablePath) -> TableStore:
        """The place of a table, also if it does not exist."""
        return self._warehouse.table(path.database, path.table)

    def location(self, path: TablePath) -> Path:
        """The folder of a table, also if it does not exist. Raises `FeatureNotSupported` where it would be on no
        disk."""
        return folder_of(self.store(path))

    @property
    def _warehouse(self) -> Warehouse:
        return LocalWarehouse(self.warehouse) if isinstance(self.warehouse, Path) else self.warehouse

    def _alter(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        table = self.table_type(self._open(path).store)
        state = table.open()
        seen = TableInfo(path, state.metadata, state.table_uuid, table.store.root, state.snapshot_id)
        altered = self._apply(seen, changes)
        if not altered.schema.equals(state.metadata.schema) or altered.properties != state.metadata.properties:
            manifest = next_manifest(
                state.head,
                commit_id=new_attempt_id(),
                kind="alter",
                metadata=altered,
                metadata_at=state.head.number + 1,
            )
            table.finish(state.manifests, state.manifests.append(manifest))
        return self.load_table(path)

    def _open(self, path: TablePath) -> ManifestLog:
        store = self.store(path)
        try:
            return self.table_type(store).manifests()
        except TableNotFound as error:
            raise TableNotFound(
                f"there is no table {path}",
                where=store.root,
                fix="Check lake.warehouse and the name; `laketier status` lists the tables.",
            ) from error

    def _checked(self, descriptor: TableDescriptor) -> TableDescriptor:
        """As a table keeps it: without metadata of columns, which belongs to where the data came from."""
        transformed = next((p for p in descriptor.partition_by if p.transform is not Transform.IDENTITY), None)
        if transformed is not None:
            fix = f"Add a column that holds {transformed} to the query, and partition by it."
            self.table_type.require(Feature.PARTITION_TRANSFORMS, fix=fix)
        self.table_type.check_descriptor(descriptor)
        self.table_type.check_types(descriptor.schema)
        schema = pa.schema([_plain(column) for column in descriptor.schema])
        return replace(descriptor, schema=schema)

    def _apply(self, table: TableInfo, changes: Sequence[SchemaChange]) -> TableDescriptor:
        for change in changes:
            self.table_type.require(_OF_CHANGE[type(change)], fix=_INSTEAD)
        schema = reshaped(table, changes)
        for added in (_plain(change.field) for change in changes if isinstance(change, AddColumn)):
            if added.name in schema.names:
                _refuse_other(schema.field(added.name), added, where=str(table.path))
            elif not added.nullable:
                raise IncompatibleTable(
                    f"column {added.name!r} can't be added as not null",
                    where=str(table.path),
                    why="existing rows have no value for it",
                    fix="Declare it nullable.",
                )
            else:
                schema = schema.append(added)
        self.table_type.check_types(schema)
        properties = table.descriptor.properties
        for change in changes:
            if isinstance(change, SetProperty):
                properties = change.applied_to(properties, where=str(table.path))
        return replace(table.descriptor, schema=schema, properties=properties)


def _plain(column: pa.Field) -> pa.Field:
    return pa.field(column.name, column.type, column.nullable)


def _refuse_other(existing: pa.Field, added: pa.Field, *, where: str) -> None:
    if not existing.type.equals(added.type):
        raise IncompatibleTable(
            f"column {added.name!r} is there with type {existing.type}, not {added.type}",
            where=where,
            fix="Cast it in the query, or add it under another name.",
        )
