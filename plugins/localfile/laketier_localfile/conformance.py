"""The harness of this format for the conformance suite: a foreign restore."""

from __future__ import annotations

from laketier.spi import LakeStorage, Passthrough, TableInfo
from laketier_localfile.place import place_of
from laketier_localfile.table import LocalFileTable


class Harness:
    """The entry point ``laketier.conformance``. ``storage``: how the store of tables in S3 is reached."""

    storage = Passthrough()

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Delete the newest manifests, as a careless clean-up or a partial restore does."""
        manifests = LocalFileTable(place_of(table.location, self.storage)).manifests()
        head, _ = manifests.head()
        for number in range(snapshot_id + 1, head.number + 1):
            manifests.store.delete(manifests.name(number))
