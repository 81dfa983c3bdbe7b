"""The harness of this format for the conformance suite: a foreign rollback. Not used otherwise."""

from __future__ import annotations

from laketier.spi import LakeStorage, TableInfo
from laketier_lance.dataset import open_dataset


class LanceHarness:
    """Found by the entry point ``lance`` of group ``laketier.conformance``."""

    engine_modules = ("lance",)

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Lance's own way back to an older version."""
        open_dataset(table.location, {}, snapshot_id).restore()  # type: ignore[no-untyped-call] # pylance has no types for it
