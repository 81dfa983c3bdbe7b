"""Which range of a log the next round reads: a pure rule over what the table holds and what the log holds."""

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
    """What becomes of a range that the source dropped before it was read."""

    FAIL = "fail"
    SKIP = "skip"


MOST_HOLES = 50
"""Ranges that a round passes over in one bucket, at most: their record, in the table, must not grow without bounds."""


@dataclass(frozen=True)
class NextRange:
    """``wanted`` is what to read. ``source`` is what the token says: it begins where the last round ended, so that
    nothing between two rounds can go missing unnoticed. ``skipped``: bucket → the starts and ends of ranges that had
    expired and were passed over, as the user allowed: before ``wanted``, or within it. ``left``: offsets that the log
    held beyond it, and ``left_at`` when the newest of them was written (ms since the epoch, UTC), None where the source
    does not say."""

    wanted: LogRange
    source: SourceRange
    skipped: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    left: int = 0
    left_at: int | None = None

    @property
    def content(self) -> str | None:
        """For the token: what was skipped, so that the table keeps a record of it. None when nothing was."""
        if not self.skipped:
            return None
        return "skipped:" + json.dumps(self.skipped, sort_keys=True, separators=(",", ":"))

    def up_to(self, end: LogOffsets) -> NextRange:
        """The same round, when it ends at ``end``, within ``wanted``."""
        unread = sum(self.wanted.end[bucket] - offset for bucket, offset in end.items())
        source = SourceRange(self.source.start, LogOffsets({**LogOffsets.from_text(self.source.end), **end}).to_text())
        passed = {
            bucket: tuple(chain.from_iterable(hole for hole in _pairs(bounds) if hole[0] < end.get(bucket, hole[1])))
            for bucket, bounds in self.skipped.items()
        }
        skipped = {bucket: bounds for bucket, bounds in passed.items() if bounds}
        # Of what stays unread nobody looked up when it was written.
        left_at = None if unread else self.left_at
        return NextRange(LogRange(self.wanted.start, end), source, skipped, self.left + unread, left_at)

    def around(self, gone: Mapping[str, Sequence[tuple[int, int]]]) -> NextRange:
        """The same round without the offsets that are ``gone``. It ends before the hole after `MOST_HOLES` of them."""
        skipped, end = dict(self.skipped), dict(self.wanted.end)
        for bucket in gone.keys() & end.keys():
            within = (max(0, self.wanted.start.get(bucket, 0)), end[bucket])
            clipped = [(max(first, within[0]), min(last, within[1])) for first, last in gone[bucket]]
            holes = _merged([*_pairs(skipped.get(bucket, ())), *(hole for hole in clipped if hole[0] < hole[1])])
            if len(holes) > MOST_HOLES:
                end[bucket] = holes[MOST_HOLES][0]
            skipped[bucket] = tuple(chain.from_iterable(holes[:MOST_HOLES]))
        return replace(self, skipped=skipped).up_to(LogOffsets(end))

    def pieces(self) -> list[LogRange]:
        """What is to be read of ``wanted``, bucket by bucket, between the holes; no empty ones."""
        found = []
        for bucket, end in self.wanted.end.items():
            start = self.wanted.start.get(bucket, 0)
            for first, last in [*_pairs(self.skipped.get(bucket, ())), (end, end)]:
                if start < first:
                    found.append(LogRange(LogOffsets({bucket: start}), LogOffsets({bucket: first})))
                start = max(start, last)
        return found


def plan_around(log: TableLog, upcoming: NextRange, on_expired: OnExpired) -> tuple[NextRange, list[LogSplit]]:
    """The splits of a round, and the round without what the log turned out to have lost in the middle of it. Raises
    `OffsetsExpired` unless ``on_expired`` is SKIP and the source knows what is gone; `StorageError` when more went
    meanwhile."""
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
    """For offsets that expire while a round runs whose user allows that: the next one passes over them."""
    return StorageError(
        "offsets expired while a round ran",
        where=expired.where,
        why=expired.what,
        fix="Nothing was published; the next round goes on without them, as on-expired is skip.",
    )


def _pairs(bounds: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(bounds[::2], bounds[1::2], strict=True))


def _merged(holes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(holes):
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
    """The range after ``committed`` (None: the table holds nothing of the log), of about ``most`` offsets at most.

    A bucket that the table does not know begins at its earliest offset; one that has an initial one begins there, and
    is read to its latest whatever ``most`` says, as older ends may have expired. One that the log has no more (a
    dropped partition) stays as it is. Raises `OffsetsExpired` when offsets are gone that were not read and
    ``on_expired`` is FAIL, and `TableChanged` when the table is ahead of the log: then it is another log.
    """
    start: dict[str, int] = {}
    end: dict[str, int] = {}
    skipped: dict[str, tuple[int, ...]] = {}
    known = committed or LogOffsets()
    whole = {bucket for bucket, held in bounds.items() if held.initial is not None and bucket not in known}
    for bucket, held in bounds.items():
        if bucket in whole:
            start[bucket], end[bucket] = held.initial or 0, held.latest
            continue
        first = known.get(bucket, held.earliest)
        if first > held.latest:
            raise TableChanged(
                f"bucket {bucket!r} ends at offset {held.latest}, and the table has read up to {first}",
                why="the log was made anew under its name, or lost its newest records",
                fix="If the log is another one now, register the table anew; else restore the log.",
            )
        if first < held.earliest:
            if on_expired is OnExpired.FAIL:
                raise OffsetsExpired(
                    f"offsets {first} to {held.earliest - 1} of bucket {bucket!r} expired before they were read",
                    fix="Nothing was skipped. Restore them, or set on-expired to skip: the gap is then recorded in the "
                    "table.",
                )
            skipped[bucket] = (first, held.earliest)
            first = held.earliest
        start[bucket], end[bucket] = first, held.latest
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


def _limited(start: Mapping[str, int], end: Mapping[str, int], most: int | None) -> dict[str, int]:
    """Shares ``most`` among the buckets by what each has, so that none starves."""
    total = sum(end[bucket] - start[bucket] for bucket in end)
    if most is None or total <= most:
        return dict(end)
    # Rounded up: every bucket with anything to read moves on, whatever the limit.
    shares = {bucket: -(-(end[bucket] - start[bucket]) * most // total) for bucket in end}
    return {bucket: start[bucket] + shares[bucket] for bucket in end}
