"""What the conformance suite needs to know of this format: how a foreign hand takes a table back."""

from __future__ import annotations

from laketier.spi import LakeStorage, TableInfo


class Harness:
    """The entry point ``laketier.conformance``."""

    engine_modules = ("deltalake",)

    def roll_back(self, _storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """RESTORE, as any Delta engine does it."""
        from deltalake import DeltaTable

        DeltaTable(table.location).restore(snapshot_id)
