"""Reading a lake table with a primary key together with the changes that it lacks: the newest row of each key.

A part of such a read holds the newest change of each key in its log splits. The rows of the lake stream by, and rows
with a changed key are left out. **Filters come after that**: an older row must not show because the newer one does
not match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from laketier.rounds.changes import LatestChanges, without_keys
from laketier.rounds.splits import weight_of
from laketier.rounds.upsert import BucketShare, aligned_buckets, in_order
from laketier.spi import (
    BucketSpec,
    ConfigError,
    IncompatibleTable,
    LakeSplit,
    LogSplit,
    LogTable,
    TableDescriptor,
    TableInfo,
)
from laketier.tables.grouping import group_splits

CHANGES_OF_A_PART = 1_000_000
"""A part holds about as many changes at most, so many parts are made of many changes."""
LAKE_BYTES_OF_A_PART = 128 * 1024 * 1024
_BYTES_PER_ROW = 100
_BATCH_ROWS = 131_072
_CHUNK_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class MergeSplit:
    """A part of a read by key: lake splits, and the log splits that may hold changes of their keys.

    ``share``: the keys that it is about, None for all. ``cut``: whether the lake splits hold others as well.
    ``newest``: whether the log's rows are its to yield; of several with the same keys, one does.
    """

    lake: tuple[LakeSplit, ...]
    log: tuple[LogSplit, ...]
    share: BucketShare | None = None
    cut: bool = False
    newest: bool = True


@dataclass(frozen=True)
class MergeRead:
    """How the parts are read. ``rows``: the schema of what they are merged to, the key's columns among it."""

    key: tuple[str, ...]
    change_column: str | None
    rows: pa.Schema

    def columns(self, split: MergeSplit, log: LogTable) -> list[str]:
        """The columns to read from the log."""
        names = self.rows.names if split.newest else self.key
        change = () if self.change_column is None else (self.change_column,)
        return [*change, *(name for name in names if name in log.schema.names)]

    def merged(
        self, split: MergeSplit, lake: Iterable[pa.RecordBatch], changes: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Merge the rows of a part: its ``lake`` splits, and ``changes`` in the order of their log. Executor. Raises
        `IncompatibleData` for a record that is no change."""
        share = split.share
        rows = self.rows if split.newest else pa.schema([self.rows.field(name) for name in self.key])
        unordered = any(each.unordered for each in split.log)
        latest = LatestChanges(rows, self.key, self.change_column, unordered=unordered)
        for batch in changes:
            latest.add(batch if share is None else share.own(batch))
        keys = latest.keys
        for batch in _in_chunks(lake, keys.num_rows):
            own = share.own(batch) if share is not None and split.cut else batch
            yield without_keys(own, keys)
        if split.newest:
            yield from latest.rows().to_batches(max_chunksize=_BATCH_ROWS)


def _in_chunks(batches: Iterable[pa.RecordBatch], keys: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches about as large as the ``keys`` that they are joined with: a join takes in all of these,
    however few rows it is for."""
    chunk: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        chunk.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= keys or size >= _CHUNK_BYTES:
            yield from pa.Table.from_batches(chunk).combine_chunks().to_batches()
            chunk, rows, size = [], 0, 0
    if chunk:
        yield from pa.Table.from_batches(chunk).combine_chunks().to_batches()


def check_same_key(lake: TableInfo, log: LogTable) -> None:
    """Raise `IncompatibleTable` when the lake's rows were not merged by the log's key."""
    actual, wanted = (", ".join(key) or "none" for key in (lake.descriptor.primary_key, log.primary_key))
    if set(lake.descriptor.primary_key) != set(log.primary_key):
        raise IncompatibleTable(
            f"the primary key of the lake table is {actual}, and that of its log {wanted}",
            where=str(lake.path),
            why="rows of one key could be there more than once",
            fix="Read the lake alone; or tier the log into another table.",
        )


def merge_splits(
    lake: Sequence[LakeSplit], changes: Sequence[LogSplit], table: TableInfo | None, log: LogTable, rows: pa.Schema
) -> tuple[LakeSplit | MergeSplit, ...]:
    """Plan the parts of a read, on the driver. Lake splits without changes in the log are read unmerged."""
    if not changes:
        return tuple(lake)
    changes = in_order(changes)
    buckets = None if table is None else table.descriptor.buckets
    if buckets is not None and all(0 <= split.bucket < buckets.count for split in lake):
        assert table is not None
        share = BucketShare.of(table.descriptor, ())
        numbers = aligned_buckets(buckets, log, changes)
        if numbers is not None:
            return _by_its_own(lake, changes, numbers, replace(share, alone=True))
        if _weight(changes) > CHANGES_OF_A_PART:
            return _by_bucket(lake, changes, share, buckets.count)
    return _by_size(lake, changes, log, rows)


def _by_its_own(
    lake: Sequence[LakeSplit], changes: Sequence[LogSplit], numbers: Mapping[str, int], share: BucketShare
) -> tuple[LakeSplit | MergeSplit, ...]:
    """The buckets of both are the same."""
    merges = [
        MergeSplit(
            tuple(split for split in lake if split.bucket == number),
            tuple(split for split in changes if split.bucket == name),
            replace(share, owned=(number,)),
        )
        for name, number in numbers.items()
    ]
    return (*(split for split in lake if split.bucket not in numbers.values()), *merges)


def _by_bucket(
    lake: Sequence[LakeSplit], changes: tuple[LogSplit, ...], share: BucketShare, count: int
) -> tuple[MergeSplit, ...]:
    """Each bucket of the lake may have changes anywhere in the log."""
    return tuple(
        MergeSplit(tuple(split for split in lake if split.bucket == number), changes, replace(share, owned=(number,)))
        for number in range(count)
    )


def _by_size(
    lake: Sequence[LakeSplit], changes: tuple[LogSplit, ...], log: LogTable, rows: pa.Schema
) -> tuple[MergeSplit, ...]:
    """Any file of the lake may hold any key. Large tables are read in several groups of files, each of which needs the
    keys of all changes; with many changes, each group is read once for each share of the keys."""
    size = sum(split.bytes or (split.rows or 1) * _BYTES_PER_ROW for split in lake)
    groups = group_splits(lake, max(1, -(-size // LAKE_BYTES_OF_A_PART))) or [()]
    return tuple(
        MergeSplit(group, changes, share, cut=share is not None, newest=index == 0)
        for share in _shares(-(-_weight(changes) // CHANGES_OF_A_PART), log, rows)
        for index, group in enumerate(groups)
    )


def _shares(parts: int, log: LogTable, rows: pa.Schema) -> list[BucketShare | None]:
    """The keys in ``parts`` parts, by their hash."""
    if parts <= 1:
        return [None]
    try:
        share = BucketShare.of(TableDescriptor(rows, buckets=BucketSpec(parts, log.primary_key)), ())
    except ConfigError:
        return [None]  # a type that has no hash: all changes are held at a time
    return [replace(share, owned=(part,)) for part in range(parts)]


def _weight(changes: Sequence[LogSplit]) -> int:
    return sum(map(weight_of, changes))
