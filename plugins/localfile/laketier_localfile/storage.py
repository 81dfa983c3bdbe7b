"""A warehouse on a local (or mounted) file system, and the factory that crosses to executors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from laketier.kit.event_time import check_event_time
from laketier.kit.manifests import (
    ManifestChanges,
    ManifestCommitter,
    ManifestHistory,
    ManifestMaintenance,
    ManifestState,
)
from laketier.spi import (
    CommitterInitContext,
    LakeCommitter,
    LakeStorage,
    LakeStorageConfig,
    LakeTieringFactory,
    LakeWriter,
    TableInfo,
    WriteMode,
    WriteResult,
    WriterInitContext,
    require_mode,
)
from laketier_localfile.adoption import LocalFileAdoption
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.features import FEATURES, IDENTIFIER
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.folding import FoldingTable
from laketier_localfile.inferred import INFERRED, InferredFiles, InferredSource, LenientCatalog, refuse_inferred
from laketier_localfile.kept import refuse_other
from laketier_localfile.naming import Naming
from laketier_localfile.open_writer import check_appendable, open_writer
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.outside import file_schema
from laketier_localfile.place import place_of, warehouse_of
from laketier_localfile.source import LocalFileSource
from laketier_localfile.table import LocalFileTable
from laketier_localfile.writer import LocalFileWriter


@dataclass(frozen=True)
class LocalFileTieringFactory(LakeTieringFactory[WriteResult]):
    """Plain data: the table as loaded, and the options."""

    table: TableInfo
    options: LocalFileOptions

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        require_mode(IDENTIFIER, FEATURES, context.mode)
        assigner = None
        if self.table.descriptor.buckets is not None:
            from laketier.bucketing import assigner_for

            assigner = assigner_for(self.table.descriptor)
        if self.options.open_files and context.open_files is not None and context.mode is WriteMode.APPEND:
            return open_writer(self.table, self.options, assigner, context)
        return LocalFileWriter(self.table, self.options, assigner, context)

    @property
    def leaves_files_open(self) -> bool:
        return self.options.open_files

    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WriteResult]:
        require_mode(IDENTIFIER, FEATURES, context.mode)
        return ManifestCommitter(
            FoldingTable(place_of(self.table.location, self.options.storage), self.options), context
        )


class LocalFileStorage(LakeStorage):
    """One warehouse: a folder on a disk, or a prefix in S3."""

    def __init__(self, config: LakeStorageConfig) -> None:
        self._options = config.options if isinstance(config.options, LocalFileOptions) else LocalFileOptions()
        self._warehouse = warehouse_of(config.warehouse, self._options)
        # What can't be part of a name is refused before anything is read or written.
        Naming(self._options.file_prefix, self._options.file_suffix)

    def catalog(self) -> LocalFileCatalog:
        kind = LocalFileCatalog if self._options.require_metadata else LenientCatalog
        return kind(LocalFileTable, self._warehouse, self._options.manifests_per_rollup, self._options)

    def tiering_factory(self, table: TableInfo) -> LocalFileTieringFactory:
        refuse_inferred(table)
        refuse_other(self._options, table.descriptor.properties, where=str(table.path))
        check_event_time(self._options, table.schema)
        of_table(table.descriptor.properties, where=str(table.path)).check_options(
            self._options, file_schema(table.descriptor)
        )
        if self._options.open_files:
            check_appendable(table, self._options)
        self._table(table).check_folder()
        descriptor = replace(table.descriptor, properties=dict(table.descriptor.properties))
        return LocalFileTieringFactory(replace(table, descriptor=descriptor), self._options)

    def source(self, table: TableInfo) -> LocalFileSource:
        if table.table_uuid == INFERRED:
            loaded = table if table.handle is not None else self.catalog().load_table(table.path)
            if isinstance(loaded.handle, InferredFiles):
                return InferredSource(self._table(table), loaded.handle)
            refuse_inferred(table)
        return LocalFileSource(self._table(table))

    def state(self, table: TableInfo) -> ManifestState:
        refuse_inferred(table)
        return self._table(table).state(table)

    def history(self, table: TableInfo) -> ManifestHistory:
        refuse_inferred(table)
        return ManifestHistory(self._table(table))

    def changes(self, table: TableInfo) -> ManifestChanges:
        refuse_inferred(table)
        return ManifestChanges(self.source(table))

    def adoption(self) -> LocalFileAdoption:
        return LocalFileAdoption(self.catalog())

    def maintenance(self, table: TableInfo) -> ManifestMaintenance:
        refuse_inferred(table)
        # It commits, too: what pipelines left open is finished as writers of these options would.
        return ManifestMaintenance(FoldingTable(place_of(table.location, self._options.storage), self._options))

    def _table(self, table: TableInfo) -> LocalFileTable:
        return LocalFileTable(place_of(table.location, self._options.storage))
