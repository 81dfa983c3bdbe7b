"""The harness of this format for the conformance suite: a foreign restore, clean-up, compaction, delete and
update, switching on the change feed, and tables of others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from laketier.spi import LakeStorage, TableInfo
from laketier_delta.changes import FEED
from laketier_delta.foreign_tables import TABLES
from laketier_delta.protocol import RETENTION

if TYPE_CHECKING:
    from laketier_conformance.stores import ObjectStore


class Harness:
    """The entry point ``laketier.conformance``."""

    engine_modules = ("deltalake",)
    foreign_tables = TABLES
    table_properties: ClassVar[Mapping[str, Sequence[str]]] = {
        "delta.checkpointInterval": ("1", "2", "1000"),
        "delta.dataSkippingNumIndexedCols": ("0", "1", "-1"),
        "delta.dataSkippingStatsColumns": ("id", "name,id"),
        FEED: ("true", "false"),
    }
    odd_properties: ClassVar[Mapping[str, Sequence[str]]] = {
        "delta.dataSkippingStatsColumns": ("nobody", "`id", "value.deep"),
        "delta.logRetentionDuration": ("interval 0 seconds", "a while"),
        "delta.deletedFileRetentionDuration": ("a while",),
        "delta.enableExpiredLogCleanup": ("true", "maybe"),
        "delta.appendOnly": ("TRUE", "maybe"),
        "delta.targetFileSize": ("1", "much"),
        "delta.columnMapping.mode": ("name", "odd"),
        "delta.enableDeletionVectors": ("true", "maybe"),
        "delta.checkpointPolicy": ("v2", "odd"),
        "delta.minReaderVersion": ("99", "x"),
        "delta.constraints.positive": ("id > 0", "id >"),
        "delta.setTransactionRetentionDuration": ("interval 30 years", "a while"),
        "laketier.buckets": ("x", "{}", '{"count": "many"}'),
        "laketier.primary-key": ("x", "{}"),
    }

    def set_property(self, _storage: LakeStorage, table: TableInfo, key: str, value: str | None) -> None:
        """An entry of the log with other metadata, as any engine writes it: delta-rs refuses what it does not know."""
        from deltalake import DeltaTable

        handle = DeltaTable(table.location)
        metadata = handle.metadata()
        configuration = {name: text for name, text in metadata.configuration.items() if name != key}
        if value is not None:
            configuration[key] = value
        action = {
            "id": str(metadata.id),
            "name": metadata.name,
            "description": metadata.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": handle.schema().to_json(),
            "partitionColumns": metadata.partition_columns,
            "createdTime": metadata.created_time,
            "configuration": configuration,
        }
        now = int(datetime.now(UTC).timestamp() * 1000)
        entry = [{"metaData": action}, {"commitInfo": {"timestamp": now, "operation": "SET TBLPROPERTIES"}}]
        log = Path(table.location) / "_delta_log" / f"{handle.version() + 1:020}.json"
        log.write_text("".join(json.dumps(each) + "\n" for each in entry), encoding="utf-8")

    def object_store(self, store: ObjectStore) -> dict[str, str]:
        """The library gives up early: its patience is not under test."""
        more = {"timeout": "1s", "max_retries": "2"}
        more |= {"backoff_config.init_backoff": "10ms", "backoff_config.max_backoff": "50ms"}
        return {f"storage.{name}": value for name, value in {**store.usual_options, **more}.items()}

    def roll_back(self, _storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """RESTORE, as any Delta engine does it."""
        from deltalake import DeltaTable

        DeltaTable(table.location).restore(snapshot_id)

    def keep_feed(self, _storage: LakeStorage, table: TableInfo) -> None:
        """The table property, as any Delta engine sets it."""
        from deltalake import DeltaTable

        DeltaTable(table.location).alter.set_table_properties({FEED: "true"})

    def expire(self, _storage: LakeStorage, table: TableInfo) -> None:
        """A checkpoint, and no entry of the log before it, as a clean-up of the log leaves them."""
        from deltalake import DeltaTable

        handle = DeltaTable(table.location)
        handle.create_checkpoint()
        for version in range(handle.version()):
            (Path(table.location) / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)

    def erase(self, storage: LakeStorage, table: TableInfo) -> None:
        """Transactions are to last for no time, a checkpoint leaves them out, and then the property is unset."""
        self.set_property(storage, table, RETENTION, "interval 0 seconds")
        self.expire(storage, table)
        self.set_property(storage, table, RETENTION, None)

    def compact(self, _storage: LakeStorage, table: TableInfo) -> None:
        """OPTIMIZE."""
        from deltalake import DeltaTable

        DeltaTable(table.location).optimize.compact()

    def delete_rows(self, _storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None:
        """DELETE."""
        from deltalake import DeltaTable

        DeltaTable(table.location).delete(f"id IN ({', '.join(map(str, ids))})")

    def update_rows(self, _storage: LakeStorage, table: TableInfo, ids: Sequence[int], column: str, text: str) -> None:
        """UPDATE."""
        from deltalake import DeltaTable

        where = f"id IN ({', '.join(map(str, ids))})"
        DeltaTable(table.location).update(predicate=where, updates={column: f"'{text}'"})
