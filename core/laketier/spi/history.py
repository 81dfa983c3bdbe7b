"""The list of a table's snapshots. A capability that a format may add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SnapshotInfo:
    """One snapshot in a table's history.

    Attributes:
        snapshot_id: Its id.
        committed_at: When it was committed, in ms since the epoch, UTC. None where the format does not know, which one
            with `Feature.TIME_TRAVEL_BY_TIMESTAMP` does.
        operation: The name of its operation, as the format has it.
        rows: How many rows it added, where laketier made the snapshot. None where the format does not know: no other
            number stands for that.
        pipeline: The pipeline, where laketier made the snapshot.
        epoch: The epoch, where laketier made the snapshot.
    """

    snapshot_id: int
    committed_at: int | None
    operation: str
    rows: int | None = None
    pipeline: str | None = None
    epoch: int | None = None


class LakeHistory(ABC):
    """The snapshots of one table. Made by `LakeStorage.history`, for a format with `Feature.HISTORY`. Driver only."""

    @abstractmethod
    def snapshots(self, limit: int) -> Sequence[SnapshotInfo]:
        """List the newest snapshots that can still be read. Reads the table afresh.

        Args:
            limit: The number of snapshots at most.

        Returns:
            The snapshots, the newest first.

        Raises:
            TableNotFound: The table was dropped.
        """
