"""Times in a table's metadata never run backwards, whatever the clocks of its writers say. Driver.

Java Iceberg allows its logs one minute of disorder and refuses to open a table with more, for ever; pyiceberg writes
what the clock says. So each commit of ours takes a time past the newest one in the table.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from laketier.spi import host_time

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import MetadataLogEntry, SnapshotLogEntry

Entry = TypeVar("Entry", "SnapshotLogEntry", "MetadataLogEntry")

TOLERANCE_MS = 60_000
"""The tolerance of Java Iceberg (`TableMetadata.ONE_MINUTE`)."""


def now_ms() -> int:
    """By the clock of this host."""
    return host_time()


def newest(metadata: TableMetadata) -> int:
    """The newest time that the metadata holds."""
    logs = (entry.timestamp_ms for log in (metadata.snapshot_log, metadata.metadata_log) for entry in log)
    snapshots = (snapshot.timestamp_ms for snapshot in metadata.snapshots)
    return max((metadata.last_updated_ms, *logs, *snapshots))


def next_time(metadata: TableMetadata) -> int:
    """For a commit on top of ``metadata``: now, or just past the newest time in it where that is later. Past it, also
    because pyiceberg takes an equal one for none and asks the clock."""
    return max(now_ms(), newest(metadata) + 1)


def in_order(base: TableMetadata, updated: TableMetadata) -> TableMetadata:
    """``updated``, which pyiceberg made of ``base`` by this host's clock, with no time before those that were there."""
    if updated.last_updated_ms == base.last_updated_ms and updated.metadata_log == base.metadata_log:
        return updated  # nothing was changed
    snapshots = _end_in_order(updated.snapshot_log, base.snapshot_log)
    files = _end_in_order(updated.metadata_log, base.metadata_log)
    ends = [log[-1].timestamp_ms for log in (snapshots, files) if log]
    updated_at = max(updated.last_updated_ms, base.last_updated_ms, *ends)
    return updated.model_copy(update={"snapshot_log": snapshots, "metadata_log": files, "last_updated_ms": updated_at})


def _end_in_order(log: list[Entry], before: list[Entry]) -> list[Entry]:
    # Times first: entries are pydantic models, of which one for each retained snapshot would be compared.
    if len(log) < 2 or log[-1].timestamp_ms >= log[-2].timestamp_ms:
        return log
    if any(entry.timestamp_ms == log[-1].timestamp_ms and entry == log[-1] for entry in reversed(before)):
        return log  # it was there
    last: Entry = log[-1].model_copy(update={"timestamp_ms": log[-2].timestamp_ms})
    return log[:-1] + [last]  # noqa: RUF005 - mypy


def disorder(metadata: TableMetadata) -> list[str]:
    """What Java Iceberg refuses to open, each as a clause; nothing where it opens the table."""
    found = []
    for name, log in (("snapshot log", metadata.snapshot_log), ("metadata log", metadata.metadata_log)):
        times = [entry.timestamp_ms for entry in log]
        steps = sum(later - earlier < -TOLERANCE_MS for earlier, later in pairwise(times))
        if steps:
            found.append(f"times in the {name} run backwards {'once' if steps == 1 else f'{steps} times'}")
        if times and metadata.last_updated_ms - times[-1] < -TOLERANCE_MS:
            found.append(f"the last update is before the end of the {name}")
    return found


def ahead(metadata: TableMetadata, now: int) -> int:
    """How far its newest time is ahead of ``now``, in ms; 0 within the tolerance. Java can't write such a table."""
    distance = newest(metadata) - now
    return distance if distance > TOLERANCE_MS else 0


def mended(metadata: TableMetadata, now: int) -> TableMetadata:
    """The same table with its logs in order and nothing later than ``now``. The longest run of entries that are in
    order keeps its times, each other entry takes that of the one before it. Snapshots move with their entries."""
    limit = now + TOLERANCE_MS
    log = [
        (entry, at) for entry, at in zip(metadata.snapshot_log, _sorted(metadata.snapshot_log, limit, now), strict=True)
    ]
    moved = {entry.snapshot_id: at for entry, at in reversed(log)}
    was = {entry.snapshot_id: entry.timestamp_ms for entry, _ in reversed(log)}
    snapshots = []
    for snapshot in metadata.snapshots:
        own, key = snapshot.timestamp_ms, snapshot.snapshot_id
        at = moved[key] if was.get(key) == own else own if own <= limit else now
        snapshots.append(snapshot if at == own else snapshot.model_copy(update={"timestamp_ms": at}))
    files = zip(metadata.metadata_log, _sorted(metadata.metadata_log, limit, now), strict=True)
    result = metadata.model_copy(
        update={
            "snapshots": snapshots,
            "snapshot_log": [entry.model_copy(update={"timestamp_ms": at}) for entry, at in log],
            "metadata_log": [entry.model_copy(update={"timestamp_ms": at}) for entry, at in files],
            "last_updated_ms": now,
        }
    )
    return result.model_copy(update={"last_updated_ms": newest(result)})


def _sorted(log: Sequence[SnapshotLogEntry | MetadataLogEntry], limit: int, now: int) -> list[int]:
    times = [entry.timestamp_ms for entry in log]
    kept = _longest_run(times, limit)
    if not kept:
        return [now] * len(times)
    result = []
    current = times[min(kept)]
    for index, own in enumerate(times):
        current = own if index in kept else current
        result.append(current)
    return result


def _longest_run(times: Sequence[int], limit: int) -> set[int]:
    """The indices of a longest subsequence up to ``limit`` that never falls."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for index, at in enumerate(times):
        if at > limit:
            continue
        place = bisect_right(tails, at)
        before[index] = ends[place - 1] if place else None
        tails[place : place + 1] = [at]
        ends[place : place + 1] = [index]
    kept: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return kept
