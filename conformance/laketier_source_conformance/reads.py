"""Reads of a log, as the tasks of a round make them."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from laketier.spi import BadRecord, BucketBounds, LogOffsets, LogRange, LogSplit, TableLog
from laketier_conformance.heard import heard
from laketier_source_conformance.harness import Row

_A_DAY = 24 * 3600 * 1000
_LONG_AGO = 946_684_800_000
"""The year 2000, in ms."""
_MOST_EMPTY = 10_000
_FEW = 16
"""Offsets that are read one by one, whatever they have."""


@dataclass
class Read:
    """What a read gave. ``batches`` are those that it gave, all kept until its end; ``bad`` the records that are no
    rows."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    bad: list[BadRecord] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """The rows, in the order of the read."""
        return [row for batch in self.batches for row in batch.to_pylist()]


def expect_ms(found: int, what: str) -> None:
    """A moment of this run, or of a backlog, in ms since 1970."""
    now = int(time.time() * 1000)
    assert _LONG_AGO < found < now + _A_DAY, f"{what} is in ms since 1970: expected about {now}, found {found}"


def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a read, as they come. A few without rows are right, as of a page of gaps: a read of nothing else
    never ends."""
    empty = 0
    for batch in batches:
        heard()
        empty = 0 if batch.num_rows else empty + 1
        if empty == _MOST_EMPTY:
            raise AssertionError(
                f"a read gives {empty} batches without a row, one after the other: expected rows, or its end"
            )
        yield batch


def by_turns(reads: Sequence[Iterator[pa.RecordBatch]]) -> list[list[pa.RecordBatch]]:
    """The batches of each read, where one batch is taken of each in turn until all have ended."""
    found: list[list[pa.RecordBatch]] = [[] for _ in reads]
    going = dict(enumerate(map(each, reads)))
    while going:
        for which, read in list(going.items()):
            batch = next(read, None)
            if batch is None:
                del going[which]
            else:
                found[which].append(batch)
    return found


def first_of(bounds: BucketBounds) -> int:
    """Where a new reader of the log begins."""
    return bounds.earliest if bounds.initial is None else bounds.initial


def begun_at(bounds: Mapping[str, BucketBounds]) -> dict[str, int]:
    """Where a reader goes on that has begun: behind a snapshot, whose rows have no offsets of their own."""
    return {
        bucket: each.latest if is_served_from_a_snapshot(each) else each.earliest for bucket, each in bounds.items()
    }


def is_served_from_a_snapshot(bounds: BucketBounds) -> bool:
    """Whether the first range of a bucket has rows in no order that offsets tell."""
    return bounds.initial is not None


def whole(bounds: Mapping[str, BucketBounds]) -> LogRange:
    """All that a new reader reads."""
    return between(
        {bucket: first_of(each) for bucket, each in bounds.items()},
        {bucket: each.latest for bucket, each in bounds.items()},
    )


def between(start: Mapping[str, int], end: Mapping[str, int]) -> LogRange:
    """A range of the buckets of ``end``."""
    return LogRange(LogOffsets({bucket: start.get(bucket, 0) for bucket in end}), LogOffsets(end))


def since(start: Mapping[str, int], bounds: Mapping[str, BucketBounds]) -> LogRange:
    """From ``start`` to the end of a log, as a round reads it: a bucket that came later begins at its initial offset,
    or else at 0."""
    return between({**{bucket: each.initial or 0 for bucket, each in bounds.items()}, **start}, latest(bounds))


def latest(bounds: Mapping[str, BucketBounds]) -> dict[str, int]:
    """Where each bucket ends."""
    return {bucket: each.latest for bucket, each in bounds.items()}


def carried(log: TableLog) -> TableLog:
    """The log as a task gets it: out of a pickle."""
    found: TableLog = pickle.loads(pickle.dumps(log))  # noqa: S301 - our own bytes
    return found


def begun(log: TableLog) -> tuple[int, Iterator[pa.RecordBatch]]:
    """Begin to read a whole log, as tasks do. Returns the number of rows of the first batch, and the others."""
    reads = [carried(log).read(split) for split in log.plan(whole(log.bounds()))]
    first = sum(batch.num_rows for batch in islice(reads[0], 1))
    return first, each(chain.from_iterable(reads))


def read_splits(log: TableLog, splits: Iterable[LogSplit], columns: Sequence[str] | None = None) -> Read:
    """Read splits of a plan, one after the other."""
    read = Read()
    for split in splits:
        read.batches += each(log.read(split, columns=columns, on_bad_record=read.bad.append))
    return read


def places(log: TableLog, bucket: str, start: int, end: int) -> Iterator[tuple[int, list[Row]]]:
    """The offsets of a bucket that have rows, and these, each read by itself. Offsets need not be dense: where one is
    the place in a file, or a moment, the range is halved until there are few, and its halves without rows are passed
    over."""
    if end - start > _FEW:
        if read_range(log, between({bucket: start}, {bucket: end})).rows:
            middle = (start + end) // 2
            yield from places(log, bucket, start, middle)
            yield from places(log, bucket, middle, end)
        return
    for offset in range(start, end):
        rows = read_range(log, between({bucket: offset}, {bucket: offset + 1})).rows
        if rows:
            yield offset, rows


def read_range(log: TableLog, wanted: LogRange | None = None, task: Callable[[TableLog], Any] = carried) -> Read:
    """Plan a range, all of the log by default, and read it as tasks do: each with a log out of a pickle."""
    wanted = whole(log.bounds()) if wanted is None else wanted
    if wanted.is_empty:
        return Read()
    return read_splits(task(log), log.plan(wanted))
