"""What Lance can be told to take for a part of an index, and how.

A full-text build takes its limit as an argument (``memory_limit``). What is sorted has a pool, whose size Lance reads
from the environment each time. ``LANCE_FTS_PARTITION_SIZE`` and others are read once in a process: they are not used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from laketier.spi import ConfigError, FeatureNotSupported, IndexKind, IndexResources, IndexSpec
from laketier_lance.features import FORMAT

_POOL = "LANCE_MEM_POOL_SIZE"
_SORTED = (IndexKind.BTREE, IndexKind.BITMAP, IndexKind.LABEL_LIST)
_LEAST = 16 * 1024**2
_AT_A_TIME = 4
"""So many partitions of full text may be in memory: one collects, a full one waits, another is written out; and the
room of a fourth is for what is read meanwhile. Lance's own limit is that of one."""
_UNBOUNDED: Mapping[IndexKind, str] = {
    IndexKind.NGRAM: "Lance writes ngrams out by their number, and reads that number once in a process",
    IndexKind.ZONEMAP: "Lance collects nothing of the column for it",
    IndexKind.BLOOMFILTER: "Lance collects nothing of the column for it",
}
_VECTORS = "Lance sorts vectors by partition on the disk, and has no limit for it"


def check_resources(spec: IndexSpec, resources: IndexResources) -> None:
    """Raises `FeatureNotSupported` for a limit that has no effect on this kind, and `ConfigError` for one that is too
    small, or contradicts another."""
    if resources.memory is not None and spec.kind not in (*_SORTED, IndexKind.INVERTED):
        reason = _UNBOUNDED.get(spec.kind, _VECTORS)
        raise FeatureNotSupported(f"memory of a task that builds {spec.kind}", format=FORMAT, reason=reason)
    if resources.partition_size is not None and spec.kind is not IndexKind.INVERTED:
        raise FeatureNotSupported(
            f"partition-size of an index of kind {spec.kind}", format=FORMAT, reason="only full text has partitions"
        )
    for name, size in (("memory", resources.memory), ("partition-size", resources.partition_size)):
        if size is not None and size < _LEAST:
            raise ConfigError(
                f"{name} = {size} is too small", where=f"index {spec.name}", fix=f"Give {_LEAST >> 20} MiB, or more."
            )
    if resources.memory is not None and (resources.partition_size or 0) * _AT_A_TIME > resources.memory:
        raise ConfigError(
            f"partition-size = {resources.partition_size} is too large for memory = {resources.memory}",
            where=f"index {spec.name}",
            why=f"up to {_AT_A_TIME - 1} partitions are in memory at a time, beside what is read",
            fix=f"Give memory = {(resources.partition_size or 0) * _AT_A_TIME}, or leave one of them out.",
        )


def text_limits(kind: IndexKind, resources: IndexResources) -> dict[str, int]:
    """What a full-text build is told. Lance divides its limit by its threads, so the size of a partition needs one."""
    if kind is not IndexKind.INVERTED:
        return {}
    if resources.partition_size is not None:
        return {"memory_limit": resources.partition_size >> 20, "num_workers": 1}
    return {} if resources.memory is None else {"memory_limit": max(1, resources.memory // _AT_A_TIME >> 20)}


@contextmanager
def pooled(kind: IndexKind, resources: IndexResources) -> Iterator[None]:
    """Sort in so much memory, in this process, for as long as it takes."""
    if kind not in _SORTED or resources.memory is None:
        yield
        return
    before = os.environ.get(_POOL)
    os.environ[_POOL] = str(resources.memory)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_POOL]
        else:
            os.environ[_POOL] = before
