"""One warehouse of Delta tables, and the factory that goes to executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from laketier.kit.event_time import check_event_time
from laketier.spi import (
    CommitterInitContext,
    LakeStorage,
    LakeTieringFactory,
    TableInfo,
    WriteMode,
    WriteResult,
    WriterInitContext,
    require_mode,
)
from laketier_delta.catalog import DeltaCatalog
from laketier_delta.changes import DeltaChanges
from laketier_delta.char_limits import limits_of
from laketier_delta.committer import DeltaCommitter
from laketier_delta.engine import handle_of
from laketier_delta.features import FEATURES, FORMAT
from laketier_delta.feed import DeltaFeed, check_feed
from laketier_delta.history import DeltaHistory
from laketier_delta.location import Location
from laketier_delta.maintenance import DeltaMaintenance
from laketier_delta.options import DeltaOptions
from laketier_delta.protocol import check_readable, check_writable
from laketier_delta.source import DeltaSource
from laketier_delta.state import DeltaTableState
from laketier_delta.writer import DeltaWriter


@dataclass(frozen=True)
class DeltaTieringFactory(LakeTieringFactory[WriteResult]):
    """Plain data: the table as it was loaded, where it is, the options, and the columns that are CHAR or VARCHAR."""

    table: TableInfo
    location: Location
    options: DeltaOptions
    limits: Mapping[str, str] = field(default_factory=dict)

    def create_writer(self, context: WriterInitContext) -> DeltaWriter:
        require_mode(FORMAT, FEATURES, context.mode)
        return DeltaWriter(self.table, self.location, self.options, context.attempt, self.limits)

    def create_committer(self, context: CommitterInitContext) -> DeltaCommitter:
        require_mode(FORMAT, FEATURES, context.mode)
        columns = [field.column for field in self.table.descriptor.partition_by]
        return DeltaCommitter(self.location, self.options, columns, context)


class DeltaStorage(LakeStorage):
    """The tables below one folder or prefix."""

    def __init__(self, warehouse: Location, options: DeltaOptions) -> None:
        self._warehouse = warehouse
        self._options = options

    def catalog(self) -> DeltaCatalog:
        return DeltaCatalog(self._warehouse, self._options)

    def tiering_factory(self, table: TableInfo) -> DeltaTieringFactory:
        location = self._warehouse.table(table.path)
        location.refuse_links()
        check_event_time(self._options, table.schema)
        self._options.check_names(FORMAT)
        self._options.check_level()
        handle = handle_of(location, table)
        check_writable(
            handle,
            location.uri,
            WriteMode.APPEND,
            accept_retention=self._options.accept_transaction_retention,
        )
        return DeltaTieringFactory(table.with_handle(None), location, self._options, limits_of(handle))

    def source(self, table: TableInfo) -> DeltaSource:
        return DeltaSource(table.with_handle(None), self._warehouse.table(table.path))

    def state(self, table: TableInfo) -> DeltaTableState:
        """Also of tables that ask more of their writers than laketier can do."""
        location = self._warehouse.table(table.path)
        handle = handle_of(location, table)
        check_readable(handle, location.uri)
        return DeltaTableState.of(handle, location)

    def history(self, table: TableInfo) -> DeltaHistory:
        return DeltaHistory(self._warehouse.table(table.path))

    def changes(self, table: TableInfo) -> DeltaChanges:
        return DeltaChanges(table.with_handle(None), self._warehouse.table(table.path))

    def feed(self, table: TableInfo) -> DeltaFeed:
        location = self._warehouse.table(table.path)
        check_feed(location)
        return DeltaFeed(table.with_handle(None), location)

    def maintenance(self, table: TableInfo) -> DeltaMaintenance:
        return DeltaMaintenance(self._warehouse.table(table.path), self._options)
