"""The tables of a warehouse: folders ``<database>/<table>.lance``."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.kit import LocalFolder, TableFolder
from laketier.kit.beside_drops import beside_drops
from laketier.kit.confine import RECORDS
from laketier.kit.local_store import files_below, refuse_found
from laketier.kit.looks import names_in
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    AddColumn,
    ConfigError,
    Conflict,
    Feature,
    IncompatibleTable,
    LakeCatalog,
    SchemaChange,
    SetProperty,
    TableDescriptor,
    TableError,
    TableInfo,
    TableNotFound,
    TablePath,
    Transform,
    UnsupportedType,
    require,
    reshaped,
    same_table,
    schema_fingerprint,
)
from laketier_lance.dataset import create_dataset, lance_errors, open_dataset, reading, reason, refuse_missing
from laketier_lance.durable import VERSIONS, make_durable, make_folders
from laketier_lance.features import FEATURES, FORMAT
from laketier_lance.lance_schema import without_field_ids
from laketier_lance.latest import latest_version, manifest_bytes
from laketier_lance.leftovers import PLAIN, foreign
from laketier_lance.location import BRANCHES, FOLDERS, SUFFIX, local_path, refuse_others, table_location
from laketier_lance.names import DATA
from laketier_lance.options import LanceOptions
from laketier_lance.private import data_path
from laketier_lance.properties import set_properties
from laketier_lance.sessions import file_session
from laketier_lance.store_drops import drop_in_store, end_drop, take_back_alterations, was_dropped, witness
from laketier_lance.table import DESCRIPTOR, TABLE_UUID, descriptor_metadata, table_info
from laketier_lance.types import check_types

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.file import LanceFileSession

_ALTER_ATTEMPTS = 10
_IN_MEMORY = 10
"""How many times as large as its file a manifest is in memory, or less."""


class LanceCatalog(LakeCatalog):
    """The datasets below one warehouse; a database is a folder, a table a folder that ends in ``.lance``."""

    def __init__(self, warehouse: str, options: LanceOptions) -> None:
        self._warehouse = warehouse
        self._options = options
        self._storage = options.storage_options()

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        if any(field.transform is not Transform.IDENTITY for field in descriptor.partition_by):
            require(FORMAT, FEATURES, Feature.PARTITION_TRANSFORMS, fix="Leave lake.partition-by out.")
        if descriptor.partition_by:
            require(FORMAT, FEATURES, Feature.PARTITIONING, fix="Leave lake.partition-by out.")
        if descriptor.buckets is not None:
            require(FORMAT, FEATURES, Feature.BUCKETING, fix="Leave lake.bucket-by out.")
        schema = without_field_ids(descriptor.schema)
        version = self._options.data_storage_version.value
        check_types(schema, version)
        wanted = replace(descriptor, schema=schema)
        location = table_location(self._warehouse, path)
        return same_table(beside_drops(lambda: self._made(path, location, wanted), location), wanted)

    def _made(self, path: TablePath, location: str, descriptor: TableDescriptor) -> TableInfo:
        try:
            info = self.load_table(path)
        except TableNotFound:
            if local_path(location) is None:
                end_drop(location, self._storage)
            metadata = {TABLE_UUID: uuid.uuid4().hex.encode(), DESCRIPTOR: descriptor_metadata(descriptor)}
            self._refuse_others(location)
            make_folders(location)
            self._create(location, descriptor.schema.with_metadata(metadata))
            info = self.load_table(path)
        # Whoever made it may have been killed before it was durable.
        make_durable(location, info.handle.version)
        return info

    def _refuse_others(self, location: str) -> None:
        """Raise `IncompatibleTable` where something else than what Lance makes lies in the place of a new table:
        dropping the table would delete it, too."""
        local = local_path(location)
        if local is not None:
            refuse_others(location)
            refuse_found(foreign(files_below(local, PLAIN)), where=location)
            return
        listed = self._listing(location)
        names = {str(path).rstrip("/").rpartition("/")[2] for path in (*listed.common_prefixes, *listed.objects)}
        refuse_found(sorted(names - {*FOLDERS, RECORDS}), where=location)
        session = self._session(location)
        below = (str(name) for folder in (*PLAIN, RECORDS) if folder in names for name in session.list(folder))
        refuse_found(foreign(below), where=location)

    def _create(self, location: str, schema: pa.Schema) -> None:
        try:
            create_dataset(location, schema, self._options.data_storage_version.value, self._storage)
        except lance_errors() as error:
            try:
                open_dataset(location, self._storage)
            except TableNotFound:
                text = reason(error)
                kind = UnsupportedType if "LanceError(Schema)" in text else TableError
                raise kind("Lance could not create the dataset", where=location, why=text) from error

    def load_table(self, path: TablePath) -> TableInfo:
        location = table_location(self._warehouse, path)
        return table_info(path, open_dataset(location, self._storage), location)

    def table_version(self, path: TablePath, known: str | None = None) -> str | None:
        return latest_version(table_location(self._warehouse, path), known)

    def handle_bytes(self, table: TableInfo) -> int | None:
        """A dataset has the fragments of its manifest, and what it read meanwhile, in a session of its own."""
        dataset = table.handle
        manifest = None if dataset is None else manifest_bytes(table.location, dataset.version)
        return None if manifest is None else _IN_MEMORY * manifest + int(dataset.session().size_bytes())

    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        location = table_location(self._warehouse, path)
        of_properties = [change for change in changes if isinstance(change, SetProperty)]
        if of_properties:
            if len(of_properties) < len(changes):
                raise ConfigError(
                    "columns and properties can't be changed in one step",
                    where=str(path),
                    fix="Change one, then the other.",
                )
            set_properties(path, location, self._options, of_properties)
            return self.load_table(path)
        for attempt in range(_ALTER_ATTEMPTS):
            dataset = open_dataset(location, self._storage)
            info = table_info(path, dataset, location)
            missing = _missing(info, [change for change in changes if isinstance(change, AddColumn)])
            wanted = reshaped(info, changes)
            alterations = _alterations(info.schema, wanted)
            if not missing and not alterations:
                # A change of types writes files anew; also another process may have made it, and been killed then.
                fragments = (fragment.metadata for fragment in dataset.get_fragments())
                files = [f"{DATA}/{data_path(file)}" for fragment in fragments for file in fragment.files]
                make_durable(location, dataset.version, files)
                break
            altered = [field for field, old in zip(wanted, info.schema, strict=True) if not field.equals(old)]
            check_types(pa.schema([*missing, *altered]), dataset.data_storage_version)
            try:
                self._alter(location, dataset, alterations, missing)
            except lance_errors() as error:
                if (why := reason(error)).startswith("Not supported"):
                    raise IncompatibleTable("Lance can't change these columns", where=location, why=why) from error
                # Lance refused, most likely as another commit came first; the next pass looks whether it is done.
                if attempt == _ALTER_ATTEMPTS - 1:
                    raise TableError("the columns could not be changed", where=location, why=why) from error
        return self.load_table(path)

    def _alter(self, location: str, dataset: LanceDataset, alterations: Sequence[Any], missing: list[pa.Field]) -> None:
        """Raises Lance's errors, and `Conflict` when the table was dropped, in an object store, just before."""
        before = int(dataset.version)
        with witness(location, self._storage, dataset) as witnesses:
            if alterations:
                dataset.alter_columns(*alterations)
            if missing:
                _add_columns(dataset, missing)
            if was_dropped(location, self._storage, dataset, witnesses, before):
                take_back_alterations(location, self._storage, dataset, before)
                raise Conflict("the table was dropped meanwhile", where=location)

    def drop_table(self, path: TablePath) -> None:
        location = table_location(self._warehouse, path)
        local = local_path(location)
        if local is None and end_drop(location, self._storage):
            return
        refuse_missing(location, self._storage)
        if local is not None:
            TableFolder.at(local).refuse_tables_below(VERSIONS, (BRANCHES,))
            # Lance would remove one file after the other, and a reader, or what a kill left, be without some.
            try:
                LocalFolder(local.parent).remove_folder(local.name)
            except FileNotFoundError as error:
                raise TableNotFound("there is no such table any more", where=location) from error
            return
        drop_in_store(location, self._storage)

    def list_tables(self, database: str | None = None) -> list[TablePath]:
        with naming_storage_errors("tables were listed"):
            databases = [database] if database is not None else self._folders(self._warehouse)
            found = []
            for name in databases:
                for folder in self._folders(f"{self._warehouse}/{name}"):
                    table = folder.removesuffix(SUFFIX)
                    is_one = table != folder and TablePath.is_name(name) and TablePath.is_name(table)
                    if is_one and self._has_versions(f"{self._warehouse}/{name}/{folder}"):
                        found.append(TablePath(name, table))
        return sorted(found)

    def _has_versions(self, location: str) -> bool:
        local = local_path(location)
        names = self._session(location).list(VERSIONS) if local is None else names_in(local / VERSIONS)
        return any(str(name).endswith(".manifest") for name in names)

    def _folders(self, location: str) -> list[str]:
        local = local_path(location)
        if local is not None:
            # Lance's own store takes a folder that can't be looked at for one that is not there.
            return [name for name in names_in(local) if _may_be_ours(name)]
        return [str(prefix).rstrip("/").rsplit("/", 1)[-1] for prefix in self._listing(location).common_prefixes]

    def _listing(self, location: str) -> Any:
        with reading(location):
            return self._session(location).list_with_delimiter()

    def _session(self, location: str) -> LanceFileSession:
        return file_session(location, self._storage)


def _may_be_ours(name: str) -> bool:
    """Whether a folder may be a database or a table. Others are not looked at: `lost+found` is nobody's to read."""
    return TablePath.is_name(name.removesuffix(SUFFIX))


def _missing(info: TableInfo, changes: Sequence[AddColumn]) -> list[pa.Field]:
    present = without_field_ids(info.schema)
    missing: list[pa.Field] = []
    for change in changes:
        field = without_field_ids(pa.schema([change.field])).field(0)
        if not field.nullable:
            raise IncompatibleTable(
                f"column {field.name!r} is not nullable",
                where=info.location,
                why="the existing rows have no value for it",
                fix="Add it as nullable.",
            )
        same_name = [f for f in (*present, *missing) if f.name.lower() == field.name.lower()]
        if not same_name:
            missing.append(field)
        elif schema_fingerprint(pa.schema([same_name[0]])) != schema_fingerprint(pa.schema([field])):
            raise IncompatibleTable(
                f"column {same_name[0].name!r} exists as {same_name[0].type}"
                f"{'' if same_name[0].nullable else ' not null'}, and {field.name!r} as {field.type} was asked for",
                where=info.location,
                fix="Use another name, or cast the input.",
            )
    return missing


def _alterations(before: pa.Schema, after: pa.Schema) -> list[Any]:
    """As Lance takes them, in one step. A new name is metadata; a new type rewrites the column."""
    found = []
    for old, new in zip(before, after, strict=True):
        alteration: dict[str, Any] = {"path": old.name}
        if old.name != new.name:
            alteration["name"] = new.name
        if not old.type.equals(new.type):
            alteration["data_type"] = new.type
        if len(alteration) > 1:
            found.append(alteration)
    return found


def _add_columns(dataset: LanceDataset, fields: list[pa.Field]) -> None:
    dataset.add_columns(pa.schema(fields))
