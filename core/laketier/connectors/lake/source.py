"""The tables of a lake, each as a log of what its commits appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.connectors.lake.log import LakeLog
from laketier.connectors.lake.options import Changes, LakeLogOptions, LakeLogTableOptions
from laketier.kit.looks import is_there
from laketier.kit.storage_errors import naming_storage_errors
from laketier.kit.warehouse import local_warehouse
from laketier.registry import Lake, configure, naming_format, open_lake
from laketier.spi import CHANGE_TYPE, ConfigError, Feature, LogSource, LogTable, StorageError, TablePath, require
from laketier.tables import logical_schema, opened
from laketier.tables.metadata import lake_of_table

_REQUIRED = ("lake.format", "lake.warehouse")


@dataclass(frozen=True)
class LakeTables(LogSource):
    """See `LogSource`. Opens the warehouse again for each call, as a catalog is one thread's."""

    name: str
    config: LakeConfig

    @classmethod
    def of(cls, name: str, options: LakeLogOptions) -> LakeTables:
        """Raises `ConfigError`, `PluginError`, and `FeatureNotSupported` when the format has no incremental read."""
        keys = {f"lake.{key}": value for key, value in options.lake.items()}
        odd = sorted(key for key in keys if key.count(".") == 1 and key.lower() not in _REQUIRED)
        if odd:
            raise ConfigError(
                f"options.{odd[0]} is not for a lake that is read",
                where=name,
                fix="Give lake.format, lake.warehouse, and keys below lake.<format>.; tables are chosen by `include`.",
            )
        # Not from the environment: its keys are the sink's.
        config = configure(keys, environment={}, require=_REQUIRED, origin=f"options of the source {name}")
        lake = open_lake(config)
        require(config.format, lake.plugin.features, Feature.INCREMENTAL_READ, fix="Read it whole, as a batch.")
        return cls(name, config)

    def list_tables(self) -> Sequence[str]:
        """``database.table`` of all databases. Raises `StorageError`, also where the warehouse is a folder that is not
        there: without tables, it would look as if each had been dropped."""
        with naming_storage_errors("the tables of the lake were listed", setting="the source's options"):
            lake = self._lake()
            found = [str(path) for path in lake.storage.catalog().list_tables()]
            if not found and lake.plugin.warehouse_is_location(self.config.warehouse, self.config.format_options):
                self._require_folder()
        return found

    def _require_folder(self) -> None:
        folder = local_warehouse(self.config.warehouse)
        if folder is not None and not is_there(folder):
            raise StorageError(
                "the warehouse of the lake is not there",
                where=str(folder),
                why="no folder has this name, so nobody can tell whether its tables were dropped",
                fix="Mount it, or correct lake.warehouse in the source's options. If the lake is new: nothing, it is "
                "listed again.",
            )

    def open(self, name: str, options: LakeLogTableOptions) -> LakeLog:
        """See `LogSource.open`. Raises also `FeatureNotSupported` for a change feed that the format has not."""
        feed = options.changes is Changes.FEED
        if feed and options.skip_changes:
            raise ConfigError(
                "read.changes: feed and read.skip-changes contradict each other",
                where=name,
                fix="Remove skip-changes: the feed contains changes, so none has to be skipped.",
            )
        lake = self._lake()
        opening = naming_storage_errors("a table of the lake was opened", setting="the source's options")
        with opening, naming_format(self.config.format):
            info = opened(lake_of_table(lake, TablePath.parse(name)))
            changes = lake.storage.changes(info)
            lasting_id = changes.versions().lasting_id
            if feed:
                require(self.config.format, lake.plugin.features, Feature.CHANGE_FEED, fix="Leave out read.changes.")
            kept = lake.storage.feed(info) if feed else None
            source = lake.storage.source(info)
        stored = _with_change_type(info.schema, name) if feed else info.schema
        layout = info.descriptor
        table = LogTable(
            name=name,
            table_id=lasting_id or info.table_uuid,
            schema=logical_schema(stored),
            partition_by=layout.partition_by if options.keep_layout else (),
            buckets=layout.buckets if options.keep_layout else None,
            change_column=CHANGE_TYPE if feed else None,
        )
        return LakeLog(table, source, stored, changes, kept, options.skip_changes)

    def _lake(self) -> Lake:
        return open_lake(self.config)


def _with_change_type(schema: pa.Schema, table: str) -> pa.Schema:
    if CHANGE_TYPE in schema.names:
        raise ConfigError(
            f"the table has a column {CHANGE_TYPE!r}, and the change types would be in one of that name",
            where=table,
            fix="Rename the column, or leave out read.changes.",
        )
    return schema.append(pa.field(CHANGE_TYPE, pa.string()))
