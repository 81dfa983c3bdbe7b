"""The cache of this process."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from laketier.config import LakeConfig
from laketier.registry import Lake
from laketier.spi import TableInfo
from laketier.tables.metadata.cache import MetadataCache
from laketier.tables.metadata.folder import cache_folder

_AT_EXIT_SECONDS = 1.0
_lock = threading.Lock()
_cache: MetadataCache | None = None
_left_behind: list[MetadataCache] = []
"""By a fork. They are never used, nor freed: libraries' objects can't be, without the threads that they had."""


def metadata_cache() -> MetadataCache:
    """The cache of this process, with the disk tier that the environment names when it is first asked for."""
    global _cache
    with _lock:
        if _cache is None:
            _cache = MetadataCache(cache_folder())
        return _cache


def described(lake: Lake) -> TableInfo:
    """See `MetadataCache.described`."""
    return metadata_cache().described(lake)


def opened(lake: Lake) -> TableInfo:
    """See `MetadataCache.opened`."""
    return metadata_cache().opened(lake)


def changed(config: LakeConfig) -> None:
    """See `MetadataCache.changed`."""
    if _cache is not None:
        _cache.changed(config)


def distrust(config: LakeConfig) -> None:
    """See `MetadataCache.distrust`."""
    if _cache is not None:
        _cache.distrust(config)


@contextmanager
def trusted(config: LakeConfig) -> Iterator[None]:
    """Something is done with what was kept of a table: if it fails, what was kept is thrown away. So a description that
    is wrong, for whatever reason, costs one attempt."""
    try:
        yield
    except BaseException:
        distrust(config)
        raise


def forget_process_cache() -> None:
    """Begin anew, with the environment as it is now. For tests."""
    global _cache
    with _lock:
        _cache = None


def _begin_anew_in_child() -> None:
    """Locks may be held by threads that a forked child has not, and handles of libraries don't live through a fork."""
    global _lock, _cache
    _lock = threading.Lock()
    if _cache is not None:
        _left_behind.append(_cache)
    _cache = None


def _flush_at_exit() -> None:
    """A short process, too, leaves something for the next one; but nobody waits for a disk that hangs."""
    if _cache is not None:
        _cache.flush(_AT_EXIT_SECONDS)


os.register_at_fork(after_in_child=_begin_anew_in_child)
atexit.register(_flush_at_exit)
