"""One warehouse of Lance datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laketier.spi import (
    CommitterInitContext,
    LakeStorage,
    LakeTieringFactory,
    TableInfo,
    UnsafeTable,
    WriteResult,
    WriterInitContext,
    require_mode,
)
from laketier_lance.catalog import LanceCatalog
from laketier_lance.changes import LanceChanges
from laketier_lance.committer import LanceCommitter
from laketier_lance.dataset import open_dataset
from laketier_lance.features import FEATURES, FORMAT
from laketier_lance.history import LanceHistory
from laketier_lance.indexer import LanceIndexer
from laketier_lance.lance_schema import column_field_ids
from laketier_lance.location import refuse_links
from laketier_lance.maintenance import LanceMaintenance
from laketier_lance.options import DataStorageVersion, LanceOptions
from laketier_lance.searcher import LanceSearcher
from laketier_lance.source import LanceSource
from laketier_lance.state import LanceTableState
from laketier_lance.types import check_types
from laketier_lance.writer import LanceTarget, LanceWriter

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True)
class LanceTieringFactory(LakeTieringFactory[WriteResult]):
    """Makes writers and committers of one table; plain data, picklable."""

    target: LanceTarget

    def create_writer(self, context: WriterInitContext) -> LanceWriter:
        require_mode(FORMAT, FEATURES, context.mode)
        return LanceWriter(self.target, context.attempt)

    def create_committer(self, context: CommitterInitContext) -> LanceCommitter:
        require_mode(FORMAT, FEATURES, context.mode)
        return LanceCommitter(self.target.table.location, self.target.options, context)


class LanceStorage(LakeStorage):
    """The datasets below one path or URI."""

    def __init__(self, warehouse: str, options: LanceOptions) -> None:
        self._warehouse = warehouse
        self._options = options

    def catalog(self) -> LanceCatalog:
        return LanceCatalog(self._warehouse, self._options)

    def tiering_factory(self, table: TableInfo) -> LanceTieringFactory:
        refuse_links(table.location)
        version = self._dataset(table).data_storage_version
        if version not in [known.value for known in DataStorageVersion]:
            raise UnsafeTable(
                f"the dataset's file format is {version}",
                where=table.location,
                why="this plugin writes 2.0, 2.1 and 2.2, and fragments of one dataset share one format",
                fix="Copy the table into one that laketier creates.",
            )
        check_types(table.schema, version)
        columns = column_field_ids(table.schema, version)
        return LanceTieringFactory(LanceTarget(table.with_handle(None), version, columns, self._options))

    def source(self, table: TableInfo) -> LanceSource:
        return LanceSource(table.with_handle(None), self._options)

    def state(self, table: TableInfo) -> LanceTableState:
        return LanceTableState.of(self._dataset(table), table.location, None)

    def history(self, table: TableInfo) -> LanceHistory:
        return LanceHistory(table.with_handle(None), self._options)

    def changes(self, table: TableInfo) -> LanceChanges:
        return LanceChanges(table.with_handle(None), self._options)

    def maintenance(self, table: TableInfo) -> LanceMaintenance:
        return LanceMaintenance(table.location, self._options)

    def indexer(self, table: TableInfo) -> LanceIndexer:
        return LanceIndexer(table.location, self._options)

    def searcher(self, table: TableInfo) -> LanceSearcher:
        return LanceSearcher(table.location, str(table.path), self._options)

    def _dataset(self, table: TableInfo) -> LanceDataset:
        handle: LanceDataset | None = table.handle
        return open_dataset(table.location, self._options.storage_options()) if handle is None else handle
