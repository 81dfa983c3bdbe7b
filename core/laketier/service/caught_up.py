"""Tables that have read their log to its end: only the source is asked, and the lake table is not opened.

The lake table decides where the next round starts. But opening it is useless while no other worker had the table and
the source's offsets are the same: hundreds of caught-up tables must not open a lake table each every few seconds. A
caught-up table is opened again after `TRUSTED_SECONDS`, as people change lake tables, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from laketier.rounds.ranges import first_unread
from laketier.service.state import Lease
from laketier.spi import BucketBounds, LogOffsets, LogTable

TRUSTED_SECONDS = 600.0
"""How long the state of a lake table is trusted after it was read."""


@dataclass(frozen=True)
class _Seen:
    fence: int
    table: LogTable
    end: LogOffsets
    at: float


@dataclass
class CaughtUpTables:
    """The tables that a round of this worker left with nothing to read. Safe in threads. Not stored: a new process
    opens each table once.

    Attributes:
        clock: A monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(self, lease: Lease, table: LogTable, end: LogOffsets) -> None:
        """Record that a round under ``lease`` read the lake table, whose log is read up to ``end``."""
        with self._lock:
            self._seen[lease.table.name] = _Seen(lease.fence, table, end, self.clock())

    def still(self, lease: Lease) -> None:
        """Record that a round under ``lease`` found nothing new, without opening the lake table."""
        with self._lock:
            seen = self._seen.get(lease.table.name)
            if seen is not None:  # else an older round of it failed meanwhile, whose lease was lost
                self._seen[lease.table.name] = _Seen(lease.fence, seen.table, seen.end, seen.at)

    def forget(self, lease: Lease) -> None:
        """Open the table next time: its last round failed, or left something to read."""
        with self._lock:
            self._seen.pop(lease.table.name, None)

    def end_of(self, lease: Lease, table: LogTable, bounds: Mapping[str, BucketBounds]) -> LogOffsets | None:
        """The offsets that a caught-up table has read up to. None for a table that must be opened."""
        with self._lock:
            seen = self._seen.get(lease.table.name)
        if seen is None or self.clock() - seen.at >= TRUSTED_SECONDS:
            return None
        # Each lease counts the fence up by one: with a gap, another worker had the table in between.
        if lease.fence != seen.fence + 1 or lease.table.offsets != seen.end.to_text():
            return None
        if (table.table_id, table.former_names) != (seen.table.table_id, seen.table.former_names):
            return None
        if not table.schema.equals(seen.table.schema):
            return None
        unchanged = all(
            log.earliest <= first_unread(seen.end, bucket, log) == log.latest for bucket, log in bounds.items()
        )
        return seen.end if unchanged else None
