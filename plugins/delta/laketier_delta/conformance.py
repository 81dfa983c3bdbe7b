"""The harness of this format for the conformance suite: a foreign restore, and switching on the change feed."""

from __future__ import annotations

from laketier.spi import LakeStorage, TableInfo
from laketier_delta.changes import FEED


class Harness:
    """The entry point ``laketier.conformance``."""

    engine_modules = ("deltalake",)

    def roll_back(self, _storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """RESTORE, as any Delta engine does it."""
        from deltalake import DeltaTable

        DeltaTable(table.location).restore(snapshot_id)

    def keep_feed(self, _storage: LakeStorage, table: TableInfo) -> None:
        """The table property, as any Delta engine sets it."""
        from deltalake import DeltaTable

        DeltaTable(table.location).alter.set_table_properties({FEED: "true"})
