"""The harness of this format for the conformance suite: a foreign rollback, expiry and deletes. Not used otherwise.
pyiceberg can't compact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from laketier.spi import LakeStorage, TableInfo
from laketier_iceberg.storage import IcebergStorage


class IcebergHarness:
    """Found by the entry point ``iceberg`` of group ``laketier.conformance``."""

    engine_modules = ("pyiceberg", "sqlalchemy")

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Iceberg's own ``rollback_to_snapshot``."""
        assert isinstance(storage, IcebergStorage)
        storage.load(table.path).manage_snapshots().rollback_to_snapshot(snapshot_id).commit()

    def expire(self, storage: LakeStorage, table: TableInfo) -> None:
        """pyiceberg's own ``expire_snapshots``, of all but the newest."""
        assert isinstance(storage, IcebergStorage)
        loaded = storage.load(table.path)
        current = loaded.metadata.current_snapshot_id
        old = [snapshot.snapshot_id for snapshot in loaded.snapshots() if snapshot.snapshot_id != current]
        loaded.maintenance.expire_snapshots().by_ids(old).commit()

    def delete_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None:
        """pyiceberg's own ``delete``, which copies what is left of a file."""
        assert isinstance(storage, IcebergStorage)
        storage.load(table.path).delete(f"id in ({', '.join(map(str, ids))})")

    def secret_options(self, folder: Path) -> Mapping[str, str]:
        """A catalog without a server, and the key of a store."""
        folder.mkdir(parents=True, exist_ok=True)
        store = {"catalog.s3.secret-access-key": "{secret}", "catalog.credential": "{secret}"}
        return {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/listed.db", **store}
