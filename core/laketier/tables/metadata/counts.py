"""Counts what a cache did."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Statistics:
    """What a cache holds, and what it did since the process began.

    Attributes:
        tables: The tables in memory.
        bytes: What they take.
        oldest_seconds: How long ago the oldest of them was loaded. None without any.
        counts: The counts of `Counts`, by name.
    """

    tables: int
    bytes: int
    oldest_seconds: float | None
    counts: Mapping[str, int]


@dataclass
class Counts:
    """Since the process began.

    Attributes:
        memory_hits: Served from memory, after its version was checked.
        disk_hits: Served from the disk of this host, after its version was checked.
        unchecked_hits: Served without a look at the table, as `lake.metadata-cache-max-age` asks.
        shared_hits: Served to who waited while another thread loaded the table.
        misses: Loaded, as nothing was kept.
        stale: Loaded, as the table has another version than what was kept.
        uncacheable: Loaded, as the format can't tell a version.
        passed_by: Loaded without a look at what was kept, as the table changed between any two looks lately.
        refreshes: Loaded behind, as what was kept was older than its time to live.
        evictions: Thrown out of memory, to stay within its bytes.
        saves: Written to the disk.
        failed_saves: Not written to the disk.
        rejected_files: Files in the disk's folder that were damaged, foreign or from the future.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    unchecked_hits: int = 0
    shared_hits: int = 0
    misses: int = 0
    stale: int = 0
    uncacheable: int = 0
    passed_by: int = 0
    refreshes: int = 0
    evictions: int = 0
    saves: int = 0
    failed_saves: int = 0
    rejected_files: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1) -> None:
        """Count one more."""
        with self._lock:
            setattr(self, name, getattr(self, name) + count)

    def as_dict(self) -> dict[str, int]:
        """All counts, by name."""
        with self._lock:
            return {field.name: getattr(self, field.name) for field in fields(self)}
