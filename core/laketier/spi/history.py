"""Listing the snapshots of a table. A capability that a format may add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SnapshotInfo:
    """One line of a table's history. ``committed_at``: ms since the epoch, UTC. ``rows`` were added (None: unknown).
    ``pipeline`` and ``epoch`` where laketier made it."""

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
        """The newest ``limit`` snapshots that can still be read, newest first. Looks at the table afresh."""
