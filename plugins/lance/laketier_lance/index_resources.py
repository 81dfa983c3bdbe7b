"""What Lance can be told to take for a part of an index, and how.

A full-text build takes its limit as an argument (``memory_limit``), which bounds what one partition collects. Beside
that it reads ahead, and that can be bounded by variables alone, which Lance reads once in a process. What is sorted has
a pool, whose size Lance reads from the environment each time.
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
_LEAST_OF_TEXT = 96 * 1024**2
"""Less can't be kept: `_BESIDE`, and partitions of 10 MiB."""
_BESIDE = 64 * 1024**2
"""What a build of full text takes beside its partitions: 42 MiB of Lance's own code, which a process that only opens a
table has not loaded yet, and what is read and written at the time."""
_AT_A_TIME = 3
"""So many partitions of full text may be in memory: one collects, a full one waits, another is written out. Lance's own
limit is that of one."""
_MERGED = 3
"""A merge of full text takes so many times the files that it merges: 2.5 times was measured."""
_LITTLE_AHEAD: Mapping[str, str] = {
    "LANCE_DEFAULT_IO_BUFFER_SIZE": str(4 * 1024**2),
    "LANCE_DEFAULT_BATCH_SIZE": "128",
    "LANCE_DEFAULT_FRAGMENT_READAHEAD": "1",
}
"""By default Lance reads up to 2 GiB ahead of what it indexes."""
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
    of_text = spec.kind is IndexKind.INVERTED
    least = {"memory": _LEAST_OF_TEXT if of_text else _LEAST, "partition-size": _LEAST}
    for name, size in (("memory", resources.memory), ("partition-size", resources.partition_size)):
        if size is not None and size < least[name]:
            raise ConfigError(
                f"{name} = {size} is too small",
                where=f"index {spec.name}",
                why=f"Lance takes {_BESIDE >> 20} MiB beside what it collects" if least[name] > _LEAST else "",
                fix=f"Give {least[name] >> 20} MiB, or more.",
            )
    needed = _BESIDE + (resources.partition_size or 0) * _AT_A_TIME
    if resources.memory is not None and resources.partition_size is not None and needed > resources.memory:
        raise ConfigError(
            f"partition-size = {resources.partition_size} is too large for memory = {resources.memory}",
            where=f"index {spec.name}",
            why=f"up to {_AT_A_TIME} partitions are in memory at a time, beside {_BESIDE >> 20} MiB",
            fix=f"Give memory = {needed}, or leave one of them out.",
        )


def text_limits(kind: IndexKind, resources: IndexResources) -> dict[str, int]:
    """What a full-text build is told. Lance divides its limit by its threads, so the size of a partition needs one."""
    if kind is not IndexKind.INVERTED:
        return {}
    if resources.partition_size is not None:
        return {"memory_limit": resources.partition_size >> 20, "num_workers": 1}
    if resources.memory is None:
        return {}
    return {"memory_limit": max(1, (resources.memory - _BESIDE) // _AT_A_TIME >> 20)}


def variables(kind: IndexKind, resources: IndexResources) -> Mapping[str, str]:
    """What a process has to start with, so that a part stays within its memory."""
    return _LITTLE_AHEAD if kind is IndexKind.INVERTED and resources.memory is not None else {}


def is_merged_within(kind: IndexKind, resources: IndexResources, size: int | None) -> bool:
    """Whether files of so many bytes can be merged within the memory: Lance collects the full text that it merges.
    Where their size is unknown, they can't."""
    if kind is not IndexKind.INVERTED or resources.memory is None:
        return True
    return size is not None and _BESIDE + size * _MERGED <= resources.memory


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
