"""The tier in memory: descriptions with their handles, the least recently used of which go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from laketier.spi import TableInfo
from laketier.tables.metadata.key import TableKey, seen_by


@dataclass(eq=False)
class Entry:
    """What is kept of one table. The fields that change are single values, so no lock is needed to read them.

    Attributes:
        key: By whom it was loaded: ``table`` has the locations of this one's alias, and its handle is for this one's
            way alone.
        table: The description, with its handle where the handle's size is known.
        version: What `LakeCatalog.table_version` said before and after it was loaded. None where it is unknown.
        locations: The table's location, by alias.
        bytes: What it takes.
        loaded_at: When it was loaded, by the cache's clock.
        checked_at: When its version was last seen to be the current one, by the cache's clock.
        must_check: Whether something that this process did may have changed the table since.
        refreshing: Whether it is being loaded anew behind.
    """

    key: TableKey
    table: TableInfo
    version: str | None
    locations: Mapping[str, str]
    bytes: int
    loaded_at: float
    checked_at: float
    must_check: bool = field(default=False)
    refreshing: bool = field(default=False)

    def served(self, key: TableKey, *, with_handle: bool) -> TableInfo | None:
        """What it has for a caller; None where that is not enough. A handle acts with the credentials and settings that
        it was loaded with: nobody gets one of somebody else's."""
        if (key.alias, key.way) == (self.key.alias, self.key.way):
            return self.table if self.table.handle is not None or not with_handle else None
        return None if with_handle else seen_by(key.alias, self.table.with_handle(None), self.locations)


class Memory:
    """A mapping of keys to entries within ``limit`` bytes. Safe in threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> Entry | None:
        """The entry, which is the most recently used one then."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, entry: Entry) -> int:
        """Keep an entry in the place of an earlier one. Returns how many others had to go."""
        evicted, key = 0, entry.key.text
        with self._lock:
            self._drop(key)
            if entry.bytes > self.limit:
                return 0
            self._entries[key] = entry
            self._bytes += entry.bytes
            while self._bytes > self.limit:
                self._drop(next(iter(self._entries)))
                evicted += 1
        return evicted

    def drop(self, key: str) -> None:
        """Forget an entry."""
        with self._lock:
            self._drop(key)

    def clear(self) -> int:
        """Forget all. Returns how many they were."""
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            self._bytes = 0
        return count

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first."""
        with self._lock:
            return list(self._entries.values())

    @property
    def bytes(self) -> int:
        """What all entries take."""
        return self._bytes

    def _drop(self, key: str) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= found.bytes
