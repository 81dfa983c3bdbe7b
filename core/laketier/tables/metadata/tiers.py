"""The parts of a cache of metadata, which its looks share."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from laketier.registry import Lake
from laketier.spi import TableInfo
from laketier.tables.metadata.asked import handle_bytes_of
from laketier.tables.metadata.background import Background
from laketier.tables.metadata.busy import Busy
from laketier.tables.metadata.counts import Counts
from laketier.tables.metadata.disk import Disk
from laketier.tables.metadata.document import Saved, encode
from laketier.tables.metadata.key import TableKey
from laketier.tables.metadata.memory import Entry, Memory
from laketier.tables.metadata.saving import Saving
from laketier.tables.metadata.turns import Turns

log = logging.getLogger(__name__)

_ENTRY_BYTES = 1024
"""What an entry takes beside its description, about."""
_MOST_ALIASES = 8


def awake_and_asleep() -> float:
    """A clock that never goes back, in seconds. On Linux it goes on while the host sleeps, as others do then."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class Tiers:
    """Memory, the disk, and who has to do with them. Safe in threads.

    Args:
        folder: Of the disk tier. None for none.
        memory_bytes: What descriptions and handles may take.
        disk_bytes: What the files may take.
        ttl: Seconds after which a description is loaded anew, behind.
        clock: A clock that never goes back, in seconds.
    """

    def __init__(
        self, folder: Path | None, *, memory_bytes: int, disk_bytes: int, ttl: float, clock: Callable[[], float]
    ) -> None:
        self.counts = Counts()
        self.disk = Disk(folder, disk_bytes, ttl, self.counts)
        self.memory = Memory(memory_bytes)
        self.background = Background()
        self.saving = Saving(self.disk, self.background, clock)
        self.turns = Turns()
        self.busy = Busy()
        self.ttl = ttl
        self.clock = clock

    def kept(self, lake: Lake, key: TableKey) -> Entry | None:
        """What memory has of the table. Never another one's: a commit by it would be right, in the wrong table."""
        entry = self.memory.get(key.text)
        return entry if entry is None or entry.table.path == lake.config.table else None

    def saved(self, lake: Lake, key: TableKey) -> Saved | None:
        """What the disk has of the table."""
        found = self.disk.read(key.name, key.text)
        return found if found is None or found.table.path == lake.config.table else None

    def locations(self, key: TableKey, table: TableInfo, version: str | None) -> dict[str, str]:
        """The table's location by each name of its warehouse: what was kept of them for this state, and this one."""
        known = self.memory.get(key.text)
        same = (
            known is not None
            and known.version == version
            and known.table == replace(table, location=known.table.location)
        )
        found = {**(known.locations if known is not None and same else {}), key.alias: table.location}
        return found if len(found) <= _MOST_ALIASES else {key.alias: table.location}

    def keep(
        self,
        lake: Lake,
        key: TableKey,
        table: TableInfo,
        version: str | None,
        locations: Mapping[str, str],
        *,
        loaded_at: float,
        checked_at: float,
    ) -> int:
        """Put a description into memory. Returns its bytes, without those of its handle."""
        size = _ENTRY_BYTES + 2 * len(encode(Saved(key.text, version or "", 0, locations, table)))
        handle = handle_bytes_of(lake, table) if table.handle is not None else None
        if handle is None or version is None or size + handle > self.memory.limit // 4:
            table, handle = table.with_handle(None), 0
        entry = Entry(key, table, version, locations, size + handle, loaded_at, checked_at)
        self.counts.add("evictions", self.memory.put(entry))
        return size
