"""The cache of tables' metadata: memory, then the disk of this host, then the table itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from laketier.config import LakeConfig
from laketier.registry import Lake, open_lake
from laketier.spi import LaketierError, TableInfo, host_time
from laketier.tables.metadata.asked import handle_bytes_of, version_of
from laketier.tables.metadata.background import Background
from laketier.tables.metadata.busy import Busy
from laketier.tables.metadata.counts import Counts, Statistics
from laketier.tables.metadata.disk import Disk
from laketier.tables.metadata.document import Saved, encode
from laketier.tables.metadata.key import TableKey, table_key
from laketier.tables.metadata.memory import Entry, Memory
from laketier.tables.metadata.turns import Turns

log = logging.getLogger(__name__)

MEMORY_BYTES = 64 * 1024 * 1024
DISK_BYTES = 64 * 1024 * 1024
TTL_SECONDS = 3600.0
_SAVE_EVERY_SECONDS = 5.0
_MOST_ALIASES = 8
_ENTRY_BYTES = 1024
"""What an entry takes beside its description, about."""


class MetadataCache:
    """Keeps the descriptions of tables, as `LakeCatalog.load_table` gives them. Safe in threads; one per process.

    What is kept is served only if `LakeCatalog.table_version` names the state that it was loaded in; a format that
    can't name one is loaded each time. So what is served is as new as what `load_table` would give. Nothing of it is
    given to `LakeCommitter.open` or `publish`.

    Args:
        folder: Of the disk tier. None for none.
        memory_bytes: What descriptions and handles may take.
        disk_bytes: What the files may take.
        ttl: Seconds after which a description is loaded anew, behind. One that is twice as old is not served.
        clock: A clock that never goes back, in seconds.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        ttl: float = TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts = Counts()
        self.disk = Disk(folder, disk_bytes, ttl, self.counts)
        self._memory = Memory(memory_bytes)
        self._memory_bytes = memory_bytes
        self._turns = Turns()
        self._background = Background()
        self._busy = Busy()
        self._ttl = ttl
        self._clock = clock
        self._saved: dict[str, float] = {}
        self._saved_lock = threading.Lock()

    # -- looking up -------------------------------------------------------------------------------------------------

    def described(self, lake: Lake) -> TableInfo:
        """The table of ``lake.config``, perhaps without a handle, and from the disk of this host. For who needs its
        schema and its place. With `lake.metadata-cache-max-age` it may be that old. Raises as `Lake.load_table`."""
        return self._look(lake, with_handle=False)

    def opened(self, lake: Lake) -> TableInfo:
        """The table of ``lake.config``, with a handle where its format has one, as it is now. For who goes on with its
        state. Raises as `Lake.load_table`."""
        return self._look(lake, with_handle=True)

    def last_known(self, lake: Lake) -> TableInfo | None:
        """What was last known of a table, also one whose metadata is gone or damaged. For who repairs it: nothing says
        that it is still so. None where nothing is known."""
        key = table_key(lake.config)
        if key is None or not lake.config.metadata_cache:
            return None
        entry = self._kept(lake, key)
        if entry is not None:
            return self._as_named(entry.table.with_handle(None), entry.locations, key.alias) or entry.table
        saved = self.disk.read(key.name, key.text)
        if saved is None or saved.table.path != lake.config.table:
            return None
        return self._as_named(saved.table, saved.locations, key.alias) or saved.table

    def _look(self, lake: Lake, *, with_handle: bool) -> TableInfo:
        key = table_key(lake.config) if lake.config.metadata_cache else None
        if key is None:
            return lake.load_table()
        patient = not with_handle and lake.config.metadata_cache_max_age > 0
        if not patient and self._busy.passes_by(key.text):
            self.counts.add("passed_by")
            return lake.load_table()
        began, now = self._clock(), None
        entry = self._kept(lake, key)
        if entry is not None:
            if not with_handle and self._may_stay_unchecked(lake, key, entry):
                served = self._of(entry, key, with_handle=False)
                if served is not None:
                    self.counts.add("unchecked_hits")
                    return served
            now = version_of(lake, entry.version)
            served = self._checked(lake, key, entry, now, with_handle=with_handle)
            if served is not None:
                self.counts.add("memory_hits")
                self._busy.unchanged(key.text)
                return served
            if now is not None and now != entry.version:
                self._busy.changed(key.text)
        with self._turns.of(key.text):
            after = self._kept(lake, key)
            if after is not None and after is not entry:
                if after.checked_at >= began:
                    served = self._of(after, key, with_handle=with_handle)
                else:  # it was looked at just before this one came, and was not kept yet
                    now = version_of(lake, after.version)
                    served = self._checked(lake, key, after, now, with_handle=with_handle)
                if served is not None:
                    self.counts.add("shared_hits")
                    return served
            saved = None if with_handle else self._on_disk(lake, key, now)
            if saved is not None:
                return saved
            self.counts.add("misses" if entry is None else "stale")
            return self._load(lake, key, now)

    def _kept(self, lake: Lake, key: TableKey) -> Entry | None:
        """What memory has of the table. Never another one's: a commit by it would be right, in the wrong table."""
        entry = self._memory.get(key.text)
        return entry if entry is None or entry.table.path == lake.config.table else None

    def _checked(
        self, lake: Lake, key: TableKey, entry: Entry, now: str | None, *, with_handle: bool
    ) -> TableInfo | None:
        """What an entry has, if the table's version is still the entry's."""
        age = self._clock() - entry.loaded_at
        if now is None or now != entry.version or age > 2 * self._ttl:
            return None
        entry.checked_at, entry.must_check = self._clock(), False
        if age > self._ttl and not entry.refreshing:
            entry.refreshing = self._background.submit(f"load {key.text}", lambda: self._refresh(lake.config))
        return self._of(entry, key, with_handle=with_handle)

    def _of(self, entry: Entry, key: TableKey, *, with_handle: bool) -> TableInfo | None:
        if key.alias == entry.alias:
            return entry.table if entry.table.handle is not None or not with_handle else None
        return None if with_handle else self._as_named(entry.table, entry.locations, key.alias)

    @staticmethod
    def _as_named(table: TableInfo, locations: Mapping[str, str], alias: str) -> TableInfo | None:
        """The description as it is loaded through another name of the warehouse."""
        location = locations.get(alias)
        return None if location is None else replace(table, location=location)

    def _may_stay_unchecked(self, lake: Lake, key: TableKey, entry: Entry) -> bool:
        most = lake.config.metadata_cache_max_age
        return key.is_whole and not entry.must_check and 0 <= self._clock() - entry.checked_at < most

    def _on_disk(self, lake: Lake, key: TableKey, now: str | None) -> TableInfo | None:
        saved = self.disk.read(key.name, key.text)
        if saved is None or key.alias not in saved.locations or saved.table.path != lake.config.table:
            return None
        age = (host_time() - saved.saved_at) / 1000
        unchecked = key.is_whole and 0 <= age < lake.config.metadata_cache_max_age and now is None
        if not unchecked:
            now = version_of(lake, saved.version) if now is None else now
            if now != saved.version:
                return None
        table = replace(saved.table, location=saved.locations[key.alias])
        self.counts.add("unchecked_hits" if unchecked else "disk_hits")
        checked_at = self._clock() - (age if unchecked else 0)
        self._keep(
            lake, key, table, saved.version, saved.locations, loaded_at=self._clock() - age, checked_at=checked_at
        )
        return table

    # -- loading ----------------------------------------------------------------------------------------------------

    def _load(self, lake: Lake, key: TableKey, now: str | None) -> TableInfo:
        """Load the table, and keep it if its version was the same before and after. In its turn."""
        before = version_of(lake, None) if now is None else now
        table = lake.load_table()
        if before is None:
            self.counts.add("uncacheable")
            if lake.config.metadata_cache_max_age <= 0:
                self._memory.drop(key.text)
                return table
        elif version_of(lake, before) != before:
            return table
        at = self._clock()
        known = self._memory.get(key.text)
        same = (
            known is not None
            and known.version == before
            and known.table == replace(table, location=known.table.location)
        )
        locations = {**(known.locations if known is not None and same else {}), key.alias: table.location}
        if len(locations) > _MOST_ALIASES:
            locations = {key.alias: table.location}
        self._keep(lake, key, table, before, locations, loaded_at=at, checked_at=at)
        if before is not None:
            self._save(key, Saved(key.text, before, host_time(), locations, table.with_handle(None)))
        return table

    def _keep(
        self,
        lake: Lake,
        key: TableKey,
        table: TableInfo,
        version: str | None,
        locations: Mapping[str, str],
        *,
        loaded_at: float,
        checked_at: float,
    ) -> None:
        size = _ENTRY_BYTES + 2 * len(encode(Saved(key.text, version or "", 0, locations, table)))
        handle = handle_bytes_of(lake, table) if table.handle is not None else None
        if handle is None or version is None or size + handle > self._memory_bytes // 4:
            table = table.with_handle(None)
        else:
            size += handle
        entry = Entry(key.text, key.alias, table, version, locations, size, loaded_at, checked_at)
        self.counts.add("evictions", self._memory.put(entry))

    def _save(self, key: TableKey, saved: Saved) -> None:
        """Behind. A table that changes all the time is not saved each time: nobody would find it unchanged."""
        if self.disk.root is None:
            return
        with self._saved_lock:
            last = self._saved.get(key.name)
            if last is not None and self._clock() - last < _SAVE_EVERY_SECONDS:
                return
            if len(self._saved) >= 10_000:
                self._saved.clear()
            self._saved[key.name] = self._clock()
        if not self._background.submit(f"save {key.name}", lambda: self._saved_behind(key.name, saved)):
            self.counts.add("failed_saves")

    def _saved_behind(self, name: str, saved: Saved) -> None:
        self.disk.save(name, saved)

    def _dropped_behind(self, name: str) -> None:
        self.disk.drop(name)

    def _refresh(self, config: LakeConfig) -> None:
        """Behind, through a lake of its own: a catalog is one thread's."""
        key = table_key(config)
        if key is None:
            return
        try:
            lake = open_lake(config)
            with self._turns.of(key.text):
                self._load(lake, key, None)
            self.counts.add("refreshes")
        except (LaketierError, OSError) as error:
            self._memory.drop(key.text)
            log.info("the table %s could not be loaded behind, and will be when it is needed: %s", config.table, error)

    # -- forgetting and looking at it -------------------------------------------------------------------------------

    def changed(self, config: LakeConfig) -> None:
        """Tell that this process committed to the table, altered or dropped it, or found it otherwise than it was
        described: what is kept is checked before it is served again, also where it need not be."""
        key = table_key(config)
        entry = None if key is None else self._memory.get(key.text)
        if entry is not None:
            entry.must_check = True

    def forget(self, config: LakeConfig) -> bool:
        """Throw away what is kept of a table, in memory and on the disk. Returns whether the disk had it."""
        key = table_key(config)
        if key is None:
            return False
        self._background.flush(_SAVE_EVERY_SECONDS)
        self._memory.drop(key.text)
        with self._saved_lock:
            self._saved.pop(key.name, None)
        return self.disk.drop(key.name)

    def distrust(self, config: LakeConfig) -> None:
        """Throw away what is kept of a table in memory, and don't wait: a round that was planned with it failed."""
        key = table_key(config)
        if key is None:
            return
        self._memory.drop(key.text)
        self._background.submit(f"save {key.name}", lambda: self._dropped_behind(key.name))
        with self._saved_lock:
            self._saved.pop(key.name, None)

    def clear(self) -> int:
        """Throw away everything, in memory and on the disk. Returns of how many tables there were files."""
        self._background.flush(_SAVE_EVERY_SECONDS)
        self._memory.clear()
        with self._saved_lock:
            self._saved.clear()
        return self.disk.clear()

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until all that has to be saved is saved, at most for ``seconds``. Returns whether it is."""
        with suppress(RuntimeError):
            return self._background.flush(seconds)
        return False

    def statistics(self) -> Statistics:
        """What is in memory, and what was counted."""
        entries, now = self._memory.entries(), self._clock()
        oldest = max((now - entry.loaded_at for entry in entries), default=None)
        return Statistics(len(entries), self._memory.bytes, oldest, self.counts.as_dict())
