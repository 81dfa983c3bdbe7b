"""A cache of metadata that is wrong on purpose: it says of a table what was so once, under the version of today."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from laketier.config import LakeConfig
from laketier.registry import open_lake
from laketier.spi import TableInfo, host_time
from laketier.tables import MetadataCache, metadata_cache
from laketier.tables.metadata.document import Saved
from laketier.tables.metadata.key import table_key
from laketier.tables.metadata.memory import Entry


@contextmanager
def poisoned(config: LakeConfig, old: TableInfo, *, believed: bool = True) -> Iterator[MetadataCache]:
    """In memory, with its handle, and on the disk. ``old``: as it was loaded once. ``believed``: whether the cache has
    no way to know better."""
    lake, key, cache = open_lake(config), table_key(config), metadata_cache()
    assert key is not None
    version = lake.storage.catalog().table_version(config.table)
    assert version is not None
    locations = {key.alias: old.location}
    now = cache.tiers.clock()
    cache.tiers.memory.put(Entry(key, old, version, locations, 0, now, now))
    cache.flush()
    assert cache.disk.save(key.name, Saved(key.text, version, host_time(), locations, old.with_handle(None)))
    if believed:
        assert cache.opened(lake) is old
    yield cache
