"""The warehouse of a format of files and manifests, and what else is the same in each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from laketier.kit.manifests.catalog import ManifestCatalog
from laketier.kit.manifests.changes import ManifestChanges
from laketier.kit.manifests.committer import ManifestCommitter
from laketier.kit.manifests.history import ManifestHistory
from laketier.kit.manifests.maintenance import ManifestMaintenance
from laketier.kit.manifests.source import ManifestSource
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.warehouse import local_warehouse
from laketier.spi.context import CommitterInitContext, WriterInitContext
from laketier.spi.errors import ConfigError
from laketier.spi.features import DeliveryLevel, Feature, Features, require, require_mode
from laketier.spi.plugin import LakeStorage, LakeStorageConfig, LakeStoragePlugin, LakeTieringFactory
from laketier.spi.table import TableInfo
from laketier.spi.writer import LakeWriter, WriteResult

NewWriter = Callable[[TableInfo, str], LakeWriter[WriteResult]]
"""Makes the writer of a task attempt, from the table and the attempt's id: a class such as an `OneFileWriter`, or a
``functools.partial`` of one that also takes options. Picklable."""


@dataclass(frozen=True)
class ManifestFactory(LakeTieringFactory[WriteResult]):
    """Holds the table's description, which is all that a writer needs. Refuses the write modes that ``features`` leave
    out."""

    table: TableInfo
    table_type: type[ManifestTable]
    new_writer: NewWriter

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        require_mode(self.table_type.layout.format, self.table_type.features, context.mode)
        return self.new_writer(self.table, context.attempt)

    def create_committer(self, context: CommitterInitContext) -> ManifestCommitter:
        require_mode(self.table_type.layout.format, self.table_type.features, context.mode)
        return ManifestCommitter(self.table_type(Path(self.table.location)), context)


@dataclass(frozen=True)
class ManifestStorage(LakeStorage):
    """A folder of tables of one format, with all capabilities that `ManifestTable` brings. Each refuses unless the
    table's ``features`` have it. Driver."""

    warehouse: Path
    table_type: type[ManifestTable]
    source_type: type[ManifestSource]
    new_writer: NewWriter

    def catalog(self) -> ManifestCatalog:
        return ManifestCatalog(self.table_type, self.warehouse)

    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[Any]:
        return ManifestFactory(table.with_handle(None), self.table_type, self.new_writer)

    def source(self, table: TableInfo) -> ManifestSource:
        return self.source_type(self._table(table))

    def state(self, table: TableInfo) -> ManifestState:
        return self._table(table).state(table)

    def history(self, table: TableInfo) -> ManifestHistory:
        return ManifestHistory(self._table(table))

    def changes(self, table: TableInfo) -> ManifestChanges:
        return ManifestChanges(self.source(table))

    def maintenance(self, table: TableInfo) -> ManifestMaintenance:
        self.table_type.require(Feature.ORPHAN_COLLECTION)
        return ManifestMaintenance(self._table(table))

    def _table(self, table: TableInfo) -> ManifestTable:
        return self.table_type(Path(table.location))


class ManifestPlugin(LakeStoragePlugin):
    """A format whose parts are a `ManifestTable`, a `ManifestSource` and a writer. An author derives it, and sets
    ``identifier``, ``spi_version``, ``features`` and these three. A format with options overrides `create_storage`, and
    gives `ManifestStorage` a writer that knows them."""

    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    table_type: ClassVar[type[ManifestTable]]
    source_type: ClassVar[type[ManifestSource]]
    writer_type: ClassVar[type[LakeWriter[WriteResult]]]

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        warehouse = warehouse_folder(config.warehouse, format=self.identifier, features=self.features)
        return ManifestStorage(warehouse, self.table_type, self.source_type, self.writer_type)


def warehouse_folder(warehouse: str, *, format: str, features: Features) -> Path:
    """The folder that ``lake.warehouse`` names, absolute, for formats on local and mounted disks: a path or a ``file:``
    URI. Raises `FeatureNotSupported` for other schemes, and `ConfigError` for nothing at all or another host."""
    folder = local_warehouse(warehouse)
    if folder is None:
        require(format, features, Feature.OBJECT_STORES, fix="Use a path or a file:// URI, or another format.")
        raise ConfigError(f"{warehouse!r} is no folder, and {format} keeps its manifests in one", fix="Use a path.")
    return folder
