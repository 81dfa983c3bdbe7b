"""The commits of a table, as its log tells of them. Driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from laketier.spi import LakeHistory, SnapshotInfo
from laketier_delta.delta_log import EPOCH, PIPELINE, DeltaLog, timestamp_of
from laketier_delta.engine import open_table
from laketier_delta.location import Location


@dataclass(frozen=True)
class DeltaHistory(LakeHistory):
    """Each entry of the log is a snapshot, as far back as the log goes."""

    location: Location

    def snapshots(self, limit: int) -> Sequence[SnapshotInfo]:
        newest = open_table(self.location).version()
        log = DeltaLog(self.location.filesystem, self.location.root)
        found = [_snapshot_info(version, info) for version, info in islice(log.newest_first(newest), limit)]
        if len(found) < min(limit, newest + 1) and is_another_by_now(self.location, log, newest):
            return self.snapshots(limit)
        return found


def is_another_by_now(location: Location, log: DeltaLog, newest: int) -> bool:
    """Whether another table is there since a look at ``newest``, whose log ended early: it may have been cleaned up, or
    was dropped meanwhile. Raises `TableNotFound` where there is none any more, and else as `open_table`."""
    return log.commit_info(newest) is None and open_table(location).version() < newest


def _snapshot_info(version: int, info: dict[str, Any]) -> SnapshotInfo:
    epoch = info.get(EPOCH)
    return SnapshotInfo(
        snapshot_id=version,
        committed_at=timestamp_of(info),
        operation=str(info.get("operation", "unknown")).lower(),
        rows=commit_rows(info),
        pipeline=info.get(PIPELINE),
        epoch=epoch if isinstance(epoch, int) else None,
    )


def commit_rows(info: dict[str, Any]) -> int | None:
    """The rows that a commit added, as its ``commitInfo`` says in the spelling of Spark or delta-rs. None where another
    writer left no such number."""
    metrics: Any = info.get("operationMetrics")
    try:
        if isinstance(metrics, str):
            metrics = json.loads(metrics)
        found = [metrics[key] for key in ("numOutputRows", "num_added_rows") if key in metrics]
        return int(found[0]) if found else None
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError):
        return None
