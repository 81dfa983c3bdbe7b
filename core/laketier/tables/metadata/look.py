"""One look-up of a table's metadata: in memory, on the disk of this host, and at the table itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from laketier.config import LakeConfig
from laketier.registry import Lake, open_lake
from laketier.spi import LaketierError, TableInfo, host_time
from laketier.tables.metadata.asked import version_of
from laketier.tables.metadata.document import Saved
from laketier.tables.metadata.key import TableKey, seen_by, table_key
from laketier.tables.metadata.memory import Entry
from laketier.tables.metadata.tiers import Tiers

log = logging.getLogger(__name__)


def look(tiers: Tiers, lake: Lake, *, with_handle: bool) -> TableInfo:
    """Describe the configured table. Raises as `Lake.load_table`."""
    key = table_key(lake.config) if lake.config.metadata_cache else None
    return lake.load_table() if key is None else _Look(tiers, lake, key, with_handle).table()


@dataclass(frozen=True)
class _Look:
    tiers: Tiers
    lake: Lake
    key: TableKey
    with_handle: bool

    def table(self) -> TableInfo:
        tiers = self.tiers
        if not self._is_patient and tiers.busy.passes_by(self.key.text):
            tiers.counts.add("passed_by")
            return self.lake.load_table()
        began, version = tiers.clock(), None
        entry = tiers.kept(self.lake, self.key)
        if entry is not None:
            if (served := self._unchecked(entry)) is not None:
                return served
            version = version_of(self.lake, entry.version)
            if (served := self._checked(entry, version)) is not None:
                tiers.counts.add("memory_hits")
                tiers.busy.unchanged(self.key.text)
                return served
            if version is not None and version != entry.version:
                tiers.busy.changed(self.key.text)
        return self._in_turn(entry, version, began)

    def _in_turn(self, seen: Entry | None, version: str | None, began: float) -> TableInfo:
        """Nothing in memory would do. Another thread may be loading the table just now."""
        with self.tiers.turns.of(self.key.text) as mine:
            if not mine:
                self.tiers.counts.add("misses")
                return self.lake.load_table()
            entry = self.tiers.kept(self.lake, self.key)
            if entry is not None and entry is not seen:
                if entry.checked_at >= began:
                    served = entry.served(self.key, with_handle=self.with_handle)
                else:  # it was looked at just before this look began, and was not kept yet
                    version = version_of(self.lake, entry.version)
                    served = self._checked(entry, version)
                if served is not None:
                    self.tiers.counts.add("shared_hits")
                    return served
            if not self.with_handle and (served := self._on_disk(version)) is not None:
                self.tiers.counts.add("disk_hits")
                return served
            self.tiers.counts.add("misses" if seen is None else "stale")
            return self.load(version)

    # -- what is kept -----------------------------------------------------------------------------------------------

    @cached_property
    def _is_patient(self) -> bool:
        """Whether the caller takes a description without a look at the table. Where something that leads to it is left
        out of the key, nobody knows whose it is."""
        return not self.with_handle and self.key.is_whole and self.lake.config.metadata_cache_max_age > 0

    def _unchecked(self, entry: Entry) -> TableInfo | None:
        age = self.tiers.clock() - entry.checked_at
        if not self._is_patient or entry.must_check or not 0 <= age < self.lake.config.metadata_cache_max_age:
            return None
        served = entry.served(self.key, with_handle=False)
        if served is not None:
            self.tiers.counts.add("unchecked_hits")
        return served

    def _checked(self, entry: Entry, version: str | None) -> TableInfo | None:
        """What an entry has, if the table's version is still the entry's."""
        age, ttl = self.tiers.clock() - entry.loaded_at, self.tiers.ttl
        if version is None or version != entry.version or age > 2 * ttl:
            return None
        entry.checked_at, entry.must_check = self.tiers.clock(), False
        if age > ttl and not entry.refreshing:
            config = self.lake.config
            entry.refreshing = self.tiers.background.submit(
                f"load {self.key.text}", lambda: refresh(self.tiers, config)
            )
        return entry.served(self.key, with_handle=self.with_handle)

    def _on_disk(self, version: str | None) -> TableInfo | None:
        """What the disk has, if that is still the table's version. Nobody is served from there without a look: other
        processes may have other environments, and hosts that share a home have other disks of one name."""
        saved = self.tiers.saved(self.lake, self.key)
        table = None if saved is None else seen_by(self.key.alias, saved.table, saved.locations)
        if saved is None or table is None:
            return None
        now = self.tiers.clock()
        if (version_of(self.lake, saved.version) if version is None else version) != saved.version:
            return None
        loaded_at = now - (host_time() - saved.saved_at) / 1000
        self._keep(table, saved.version, saved.locations, min(loaded_at, now), now)
        return table

    # -- the table itself -------------------------------------------------------------------------------------------

    def load(self, version: str | None) -> TableInfo:
        """Load the table, and keep it if its version was the same before and after. In its turn."""
        before = version_of(self.lake, None) if version is None else version
        table = self.lake.load_table()
        if before is None:
            self.tiers.counts.add("uncacheable")
            if not self._is_patient:
                self.tiers.memory.drop(self.key.text)
                return table
        elif version_of(self.lake, before) != before:
            return table
        at = self.tiers.clock()
        try:
            locations = self.tiers.locations(self.key, table, before)
            size = self._keep(table, before, locations, at, at)
        except Exception as error:  # noqa: BLE001 - a description that can't be written down is right all the same
            log.info("the description of %s can't be kept: %r", self.lake.config.table, error)
            self.tiers.memory.drop(self.key.text)
            return table
        if before is not None:
            saved = Saved(self.key.text, before, host_time(), locations, table.with_handle(None))
            if not self.tiers.saving.save(self.key, saved, size):
                self.tiers.counts.add("failed_saves")
        return table

    def _keep(
        self, table: TableInfo, version: str | None, locations: Mapping[str, str], loaded_at: float, checked_at: float
    ) -> int:
        return self.tiers.keep(
            self.lake, self.key, table, version, locations, loaded_at=loaded_at, checked_at=checked_at
        )


def refresh(tiers: Tiers, config: LakeConfig) -> None:
    """Load a table behind, through a lake of its own: a catalog is one thread's."""
    key = table_key(config)
    if key is None:
        return
    try:
        lake = open_lake(config)
        with tiers.turns.of(key.text) as mine:
            if mine:
                _Look(tiers, lake, key, with_handle=True).load(None)
        tiers.counts.add("refreshes")
    except (LaketierError, OSError) as error:
        tiers.memory.drop(key.text)
        log.info("the table %s could not be loaded behind, and will be when it is needed: %s", config.table, error)
