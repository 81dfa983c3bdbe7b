"""The harness of this format for the conformance suite: a foreign restore."""

from __future__ import annotations

from pathlib import Path

from laketier.spi import LakeStorage, TableInfo
from laketier_localfile.table import LocalFileTable


class Harness:
    """The entry point ``laketier.conformance``."""

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Delete the newest manifests, as a careless clean-up or a partial restore does."""
        manifests = LocalFileTable(Path(table.location)).manifests()
        head, _ = manifests.head()
        for number in range(snapshot_id + 1, head.number + 1):
            manifests.path(number).unlink()
