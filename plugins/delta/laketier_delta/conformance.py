"""The harness of this format for the conformance suite: a foreign restore, clean-up, compaction, delete and
update, switching on the change feed, and tables of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from laketier.spi import LakeStorage, TableInfo
from laketier_delta.changes import FEED
from laketier_delta.foreign_tables import TABLES

if TYPE_CHECKING:
    from laketier_conformance.stores import ObjectStore


class Harness:
    """The entry point ``laketier.conformance``."""

    engine_modules = ("deltalake",)
    foreign_tables = TABLES

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
