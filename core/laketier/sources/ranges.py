"""Which range of a log the next round reads: a pure rule over what the table holds and what the log holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from laketier.spi import BucketBounds, LogOffsets, LogRange, OffsetsExpired, SourceRange, TableChanged


class OnExpired(Enum):
    """What becomes of a range that the source dropped before it was read."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True)
class NextRange:
    """``wanted`` is what to read. ``source`` is what the token says: it begins where the last round ended, so that
    nothing between two rounds can go missing unnoticed. ``skipped``: bucket → the offsets that had expired and were
    passed over, as the user allowed; they differ by just these. ``left``: offsets that the log held beyond it, and
    ``left_at`` when the newest of them was written (ms since the epoch, UTC), None where the source does not say."""

    wanted: LogRange
    source: SourceRange
    skipped: Mapping[str, tuple[int, int]] = field(default_factory=dict)
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
        return NextRange(LogRange(self.wanted.start, end), source, self.skipped, self.left + unread)


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
    skipped: dict[str, tuple[int, int]] = {}
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
