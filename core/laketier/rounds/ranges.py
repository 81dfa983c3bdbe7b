"""Decides which range of a log the next round reads. A pure rule over the offsets of the table and of the log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain

from laketier.spi import (
    BucketBounds,
    LogOffsets,
    LogRange,
    LogSplit,
    OffsetsExpired,
    SourceRange,
    StorageError,
    TableChanged,
    TableLog,
)


class OnExpired(Enum):
    """The treatment of a range that the source dropped before it was read."""

    FAIL = "fail"
    SKIP = "skip"


MAX_EXPIRED_RANGES = 50
"""The expired ranges that a round skips in one bucket at most: their record in the table must stay small."""


@dataclass(frozen=True)
class NextRange:
    """The range that a round reads, and the range that its token names.

    Attributes:
        wanted: The offsets to read.
        source: The range in the token. It starts where the last round ended, so that no gap between two rounds goes
            unnoticed.
        skipped: The expired ranges that are skipped, as the user allowed, before ``wanted`` or within it: for each
            bucket their starts and ends in turn.
        left: The offsets of the log beyond ``wanted``.
        left_at: When the newest of the offsets ``left`` was written, in ms since the epoch, UTC. None where the source
            does not say.
    """

    wanted: LogRange
    source: SourceRange
    skipped: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    left: int = 0
    left_at: int | None = None

    @property
    def content(self) -> str | None:
        """The token's content: the skipped ranges, so that the table keeps a record of them. None when nothing was
        skipped."""
        if not self.skipped:
            return None
        return "skipped:" + json.dumps(self.skipped, sort_keys=True, separators=(",", ":"))

    def up_to(self, end: LogOffsets) -> NextRange:
        """The same round, ending earlier: at ``end``, within ``wanted``. No stamp is known of that end."""
        unread = sum(self.wanted.end[bucket] - offset for bucket, offset in end.items())
        ends_at = LogOffsets({**LogOffsets.from_text(self.source.end), **end}).to_text()
        source = self.source if ends_at == self.source.end else SourceRange(self.source.start, ends_at)
        passed = {
            bucket: tuple(chain.from_iterable(gone for gone in _pairs(bounds) if gone[0] < end.get(bucket, gone[1])))
            for bucket, bounds in self.skipped.items()
        }
        skipped = {bucket: bounds for bucket, bounds in passed.items() if bounds}
        # Of what stays unread nobody looked up when it was written.
        left_at = None if unread else self.left_at
        return NextRange(LogRange(self.wanted.start, end), source, skipped, self.left + unread, left_at)

    def around(self, gone: Mapping[str, Sequence[tuple[int, int]]]) -> NextRange:
        """The same round without the expired ranges ``gone``. It skips up to `MAX_EXPIRED_RANGES` of them in a bucket,
        and ends before the next one."""
        skipped, end = dict(self.skipped), dict(self.wanted.end)
        for bucket in gone.keys() & end.keys():
            within = (max(0, self.wanted.start.get(bucket, 0)), end[bucket])
            clipped = [(max(first, within[0]), min(last, within[1])) for first, last in gone[bucket]]
            within_range = [one for one in clipped if one[0] < one[1]]
            expired = _merged([*_pairs(skipped.get(bucket, ())), *within_range])
            if len(expired) > MAX_EXPIRED_RANGES:
                end[bucket] = expired[MAX_EXPIRED_RANGES][0]
            skipped[bucket] = tuple(chain.from_iterable(expired[:MAX_EXPIRED_RANGES]))
        return replace(self, skipped=skipped).up_to(LogOffsets(end))

    def pieces(self) -> list[LogRange]:
        """The ranges to read: ``wanted`` without the skipped ranges, bucket by bucket. None of them is empty."""
        found = []
        for bucket, end in self.wanted.end.items():
            start = self.wanted.start.get(bucket, 0)
            for first, last in [*_pairs(self.skipped.get(bucket, ())), (end, end)]:
                if start < first:
                    found.append(LogRange(LogOffsets({bucket: start}), LogOffsets({bucket: first})))
                start = max(start, last)
        return found


def plan_around(log: TableLog, upcoming: NextRange, on_expired: OnExpired) -> tuple[NextRange, list[LogSplit]]:
    """Plan the splits of a round, around ranges that expired within it.

    Returns:
        The round without the expired ranges, and its splits.

    Raises:
        OffsetsExpired: ``on_expired`` is FAIL, or the source does not know which offsets are gone.
        StorageError: More offsets expired while the round was planned.
    """
    try:
        return upcoming, list(log.plan(upcoming.wanted))
    except OffsetsExpired as expired:
        if on_expired is not OnExpired.SKIP or not expired.gone:
            raise
        upcoming = upcoming.around(expired.gone)
    try:
        return upcoming, [split for piece in upcoming.pieces() for split in log.plan(piece)]
    except OffsetsExpired as expired:
        raise skipped_later(expired) from expired


def skipped_later(expired: OffsetsExpired) -> StorageError:
    """The error for offsets that expire while a round runs, where the user allows to skip them: the next round does."""
    return StorageError(
        "offsets expired while a round ran",
        where=expired.where,
        why=expired.what,
        fix="Nothing was published. The next round skips them, as on-expired is skip.",
    )


def _pairs(bounds: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(bounds[::2], bounds[1::2], strict=True))


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def next_range(
    committed: LogOffsets | None,
    bounds: Mapping[str, BucketBounds],
    *,
    most: int | None = None,
    on_expired: OnExpired = OnExpired.FAIL,
) -> NextRange:
    """Choose the range of the next round.

    A table that holds nothing of the log starts at the earliest offsets. A bucket that came to the log later starts at
    0: what expired of it before its first round was to be read. A bucket with an initial offset starts there, and is
    read to its latest offset whatever ``most`` says, as older ends may have expired. A bucket that the log does not
    have any more (of a dropped partition) keeps its offset.

    Args:
        committed: The offsets that the table has read up to. None when it holds nothing of the log.
        bounds: The bounds of the log's buckets.
        most: The number of offsets to read at most, shared among the buckets. None for no limit.
        on_expired: What to do about offsets that expired before they were read.

    Returns:
        The range, which may be empty.

    Raises:
        OffsetsExpired: Offsets expired before they were read, and ``on_expired`` is FAIL.
        TableChanged: The table is ahead of the log, so it is another log.
    """
    start: dict[str, int] = {}
    end: dict[str, int] = {}
    skipped: dict[str, tuple[int, ...]] = {}
    known = committed or LogOffsets()
    whole = {bucket for bucket, log in bounds.items() if log.initial is not None and bucket not in known}
    for bucket, log in bounds.items():
        if bucket in whole:
            start[bucket], end[bucket] = log.initial or 0, log.latest
            continue
        first = first_unread(committed, bucket, log)
        if first > log.latest:
            raise TableChanged(
                f"bucket {bucket!r} ends at offset {log.latest}, and the table has read up to {first}",
                why="the log was dropped and recreated, or lost its newest records",
                fix="If this is another log now, register the table again. Otherwise restore the log.",
            )
        if first < log.earliest:
            if on_expired is OnExpired.FAIL:
                raise OffsetsExpired(
                    f"offsets {first} to {log.earliest - 1} of bucket {bucket!r} expired before they were read",
                    fix="Nothing was skipped. Restore them, or set on-expired to skip: the gap is then recorded in the "
                    "table.",
                )
            skipped[bucket] = (first, log.earliest)
            first = log.earliest
        start[bucket], end[bucket] = first, log.latest
    limited = {**end, **_limited(start, {bucket: end[bucket] for bucket in end if bucket not in whole}, most)}
    wanted = LogRange(LogOffsets(start), LogOffsets(limited))
    gone = {bucket: offset for bucket, offset in known.items() if bucket not in bounds}
    # A new bucket adds to the range's end only: the start must be the very text that the last round ended with.
    before = known if committed is not None else LogOffsets()
    source = SourceRange(before.to_text(), LogOffsets({**gone, **limited}).to_text())
    beyond = [bucket for bucket in end if limited[bucket] < end[bucket]]
    written = [bounds[bucket].latest_at for bucket in beyond]
    told = [at for at in written if at is not None]
    left_at = max(told) if told and len(told) == len(written) else None
    return NextRange(wanted, source, skipped, sum(end[bucket] - limited[bucket] for bucket in beyond), left_at)


def first_unread(committed: LogOffsets | None, bucket: str, log: BucketBounds) -> int:
    """Where a bucket without an initial offset goes on. ``committed``: what the table has read up to."""
    return log.earliest if committed is None else committed.get(bucket, 0)


def _limited(start: Mapping[str, int], end: Mapping[str, int], most: int | None) -> dict[str, int]:
    """Share ``most`` among the buckets in proportion to their offsets, so that none starves."""
    total = sum(end[bucket] - start[bucket] for bucket in end)
    if most is None or total <= most:
        return dict(end)
    # Rounded up: every bucket with anything to read moves on, whatever the limit.
    shares = {bucket: -(-(end[bucket] - start[bucket]) * most // total) for bucket in end}
    return {bucket: start[bucket] + shares[bucket] for bucket in end}
