"""The versions of a dataset. Driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from laketier.spi import LakeHistory, SnapshotInfo, TableInfo
from laketier_lance.dataset import open_dataset, properties_of, read_transaction
from laketier_lance.options import LanceOptions
from laketier_lance.private import moment_of
from laketier_lance.table import EPOCH, PIPELINE, ROWS
from laketier_lance.versions import versions_of

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class LanceHistory(LakeHistory):
    """Each version is a snapshot."""

    table: TableInfo
    options: LanceOptions

    def snapshots(self, limit: int) -> Sequence[SnapshotInfo]:
        location, storage = self.table.location, self.options.storage_options()
        dataset = open_dataset(location, storage)
        found = []
        for version in versions_of(dataset)[::-1][:limit]:
            transaction = read_transaction(dataset, version)
            properties = properties_of(transaction)
            # pylance has no class for some operations, and gives the one that all others are made of.
            name = _UNKNOWN if transaction is None else type(transaction.operation).__name__.lower()
            found.append(
                SnapshotInfo(
                    snapshot_id=version,
                    committed_at=committed_at(location, storage, version),
                    operation=_UNKNOWN if name == "baseoperation" else name,
                    rows=_integer(properties.get(ROWS)),
                    pipeline=properties.get(PIPELINE),
                    epoch=_integer(properties.get(EPOCH)),
                )
            )
        return found


def committed_at(location: str, storage: dict[str, str], version: int) -> int:
    """When a version was committed, ms since the epoch. Raises `SnapshotNotFound`."""
    return int(moment_of(open_dataset(location, storage, version)).timestamp() * 1000)


def _integer(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() else None
