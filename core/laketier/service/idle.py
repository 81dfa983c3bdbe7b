"""Tables of which nothing is new: a look at the source is enough, and the lake is left alone.

The lake table decides where a log goes on. But as long as nobody else had the table since this worker looked at it, and
the source holds what it held then, opening it would tell nothing: hundreds of idle tables must not cost a look into the
lake each, every few seconds. It is looked at again now and then, as people do things to lake tables, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from laketier.service.state import Lease
from laketier.spi import BucketBounds, LogOffsets, LogTable

TRUSTED_SECONDS = 600.0
"""For so long what was seen in a lake table is taken to be there still."""


@dataclass(frozen=True)
class _Seen:
    fence: int
    table: LogTable
    end: LogOffsets
    at: float


@dataclass
class IdleTables:
    """What this worker saw last of the tables that it ended a round of with nothing left. Safe in threads; forgotten
    with the process, after which each table is looked at anew. ``clock``: seconds that only grow."""

    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(self, lease: Lease, table: LogTable, end: LogOffsets) -> None:
        """A round under ``lease`` looked into the lake table, which has read its log up to ``end``."""
        with self._lock:
            self._seen[lease.table.name] = _Seen(lease.fence, table, end, self.clock())

    def still(self, lease: Lease) -> None:
        """A round under ``lease`` found the table idle, without a look into the lake."""
        with self._lock:
            seen = self._seen[lease.table.name]
            self._seen[lease.table.name] = _Seen(lease.fence, seen.table, seen.end, seen.at)

    def forget(self, lease: Lease) -> None:
        """What became of its last round is not known, or it left something."""
        with self._lock:
            self._seen.pop(lease.table.name, None)

    def end_of(self, lease: Lease, table: LogTable, bounds: Mapping[str, BucketBounds]) -> LogOffsets | None:
        """Where an idle table has read up to; None for one that must be looked at."""
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
            held.earliest <= seen.end.get(bucket, held.earliest) == held.latest for bucket, held in bounds.items()
        )
        return seen.end if unchanged else None
