"""The tables of one Iceberg catalog."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from laketier.kit.beside_drops import beside_drops
from laketier.kit.looks import is_folder, is_there
from laketier.spi import (
    Feature,
    IncompatibleTable,
    LakeCatalog,
    SchemaChange,
    SetProperty,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    require,
    same_table,
)
from laketier_iceberg.alteration import alter
from laketier_iceberg.connection import CatalogSettings, connect, naming_catalog_errors, sync_embedded
from laketier_iceberg.descriptions import info_of, properties_of
from laketier_iceberg.features import FEATURES
from laketier_iceberg.leftovers import foreign_in
from laketier_iceberg.loading import load, not_found
from laketier_iceberg.pointer import current_pointer, metadata_bytes
from laketier_iceberg.resolution import refuse_odd_mapping
from laketier_iceberg.spec import FORMAT, fields_of, to_spec
from laketier_iceberg.table_properties import check_properties, refuse_unopened
from laketier_iceberg.types import to_arrow, to_iceberg

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)


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

        properties, fields = properties_of(descriptor), fields_of(descriptor)
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
            raise not_found(path) from error
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
        if any(isinstance(each, SetProperty) for each in changes):
            require(FORMAT, FEATURES, Feature.SET_PROPERTY, fix="Tier into a new table.")
        return alter(self._settings, path, changes)

    @_told
    def drop_table(self, path: TablePath) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        from laketier_iceberg.removal import drop

        table = load(self._settings, path)
        catalog = connect(self._settings)
        try:
            drop(catalog, table, own_folder=self._location(path))
        except NoSuchTableError as error:
            raise not_found(path) from error

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
