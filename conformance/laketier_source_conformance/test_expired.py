"""What expired is told, and never read as if nothing had been there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from laketier.spi import LogOffsets, LogRange, LogSplit, OffsetsExpired, TableLog
from laketier_conformance.expect import expect, goes_well
from laketier_source_conformance.harness import Row
from laketier_source_conformance.reads import (
    Read,
    begun,
    between,
    carried,
    is_served_from_a_snapshot,
    latest,
    read_range,
    read_splits,
    since,
    whole,
)
from laketier_source_conformance.system import CannotBe, Table, ordered


def _expired(table: Table) -> tuple[TableLog, LogRange, list[LogSplit], list[str]]:
    """A log whose oldest records are gone: its range before that, the splits that were planned of it, and its rows."""
    for _ in range(3):
        table.append(4)
    log = table.log()
    wanted = whole(log.bounds())
    splits = list(log.plan(wanted))
    table.ask("expire")
    return log, wanted, splits, ordered(table.rows)


def test_the_earliest_offset_tells_what_expired(table: Table) -> None:
    log, wanted, _, _ = _expired(table)
    for doing, bounds in (("the same log", log.bounds()), ("a log that was opened anew", table.log().bounds())):
        grown = [
            bucket for bucket, start in wanted.start.items() if bucket not in bounds or bounds[bucket].earliest > start
        ]
        assert grown, f"records expired, and `bounds` of {doing} still begins where it did: {bounds}"
        for bucket, end in wanted.end.items():
            assert bucket in bounds, f"records expired, and `bounds` of {doing} lost bucket {bucket!r}: {bounds}"
            last = bounds[bucket].latest
            assert last >= end, f"records expired, and the latest offset of bucket {bucket!r} fell from {end} to {last}"
            # Whoever lets them expire may use up offsets, as a commit does that writes files anew.
            more = read_range(log, between({bucket: end}, {bucket: last})).rows
            expect(more, [], f"rows from offset {end} of bucket {bucket!r} on, after records expired and none came")


def test_what_is_left_is_read_whole(table: Table) -> None:
    log, _, _, rows = _expired(table)
    bounds = log.bounds()
    found = read_range(log, whole(bounds)).rows
    assert found, "some records expired, and a new reader reads none of the others"
    extra = [row for row in ordered(found) if row not in rows]
    expect(extra, [], "rows that are left after others expired, and were never appended")
    doubled = [row for row, count in Counter(ordered(found)).items() if count > 1]
    expect(doubled, [], "rows that are left after others expired, and are there twice")
    fewer = [text for text in ordered(table.rows[-4:]) if text not in ordered(found)]
    expect(fewer, [], "of the newest rows, those that were lost as older ones expired")


def test_a_range_that_expired_is_refused(table: Table) -> None:
    log, wanted, _, rows = _expired(table)
    for doing, one in (("the same log", log), ("a log that was opened anew", table.log())):
        bounds = one.bounds()
        if any(is_served_from_a_snapshot(each) for each in bounds.values()):
            wanted = LogRange(LogOffsets({bucket: start + 1 for bucket, start in wanted.start.items()}), wanted.end)
            rows = []
        _is_refused_or_whole(partial(read_range, one, wanted), rows, f"by {doing}")


def test_a_split_whose_records_expired_is_refused(table: Table) -> None:
    """It was planned before, and a task reads it later."""
    log, _, splits, rows = _expired(table)
    _is_refused_or_whole(partial(read_splits, carried(log), splits), rows, "by the task of an earlier plan")


def test_records_that_expire_while_they_are_read_are_not_lost_in_silence(table: Table) -> None:
    """A read that fetches its records page by page: what tells that none is missing comes after the last page."""
    count = table.append_pages(40)
    found, others = begun(table.log())
    table.ask("expire_all")
    try:
        found += sum(batch.num_rows for batch in others)
    except OffsetsExpired:
        return
    expect(found, count, "rows of a log all of whose records expired once its first batch was read, and no error")


def test_what_is_told_to_be_gone_has_no_rows(table: Table) -> None:
    """A user may have said to pass over it: whatever lies there is lost."""
    log, wanted, _, _ = _expired(table)
    bounds = log.bounds()
    if any(is_served_from_a_snapshot(each) for each in bounds.values()):
        wanted = LogRange(LogOffsets({bucket: start + 1 for bucket, start in wanted.start.items()}), wanted.end)
    gone = _gone(log, wanted)
    if not gone:
        raise CannotBe("gone: the source does not list the ranges that are missing")
    found: list[Row] = []
    with goes_well("of a range that expired, what `gone` leaves is read"):
        for bucket, end in wanted.end.items():
            at = wanted.start[bucket]
            for first, last in [*sorted(gone.get(bucket, ())), (end, end)]:
                if at < first:
                    found += read_range(log, between({bucket: at}, {bucket: first})).rows
                at = max(at, last)
    starts = {bucket: each.earliest for bucket, each in bounds.items()}
    left = read_range(log, between(starts, wanted.end)).rows
    lost = [row for row in ordered(left) if row not in ordered(found)]
    expect(lost, [], f"rows that are still there, in ranges that are told to be gone: {dict(gone)}")


def _gone(log: TableLog, wanted: LogRange) -> Mapping[str, Sequence[tuple[int, int]]]:
    try:
        read_range(log, wanted)
    except OffsetsExpired as error:
        return error.gone
    return {}


def test_rows_after_an_expiry_keep_their_offsets(table: Table) -> None:
    log, _, _, _ = _expired(table)
    before = {bucket: each.latest for bucket, each in log.bounds().items()}
    rows = table.append(3)
    log = table.log()
    after = {bucket: each.latest for bucket, each in log.bounds().items()}
    table.expect_rows(read_range(log, between(before, after)).rows, "what came after records expired", rows)


def test_a_log_whose_records_all_expired_goes_on(table: Table) -> None:
    """Its offsets are those of the records that were there."""
    table.append(4)
    log = table.log()
    before = latest(log.bounds())
    table.ask("expire_all")
    left: dict[str, int] = {}
    for doing, one in (("the same log", log), ("a log that was opened anew", table.log())):
        left = latest(one.bounds())  # a bucket may go with its records, as that of a partition which is dropped
        then = {bucket: end for bucket, end in before.items() if bucket in left}
        now = {bucket: left[bucket] for bucket in then}
        expect(now, then, f"the latest offset of each bucket that is left, by {doing}, after all records expired")
    rows = table.append(3)
    one = table.log()
    bounds = one.bounds()
    back = sorted(set(before) & set(bounds) - set(left))
    expect(back, [], "buckets that `bounds` had no more after all their records expired, and has again")
    found = read_range(one, since(before, bounds)).rows
    table.expect_rows(found, "what came after all records expired", rows)


def _is_refused_or_whole(read: Callable[[], Read], rows: list[str], doing: str) -> None:
    """A source may still have what it calls expired; it may not give a part of it."""
    try:
        found = read()
    except OffsetsExpired as error:
        for bucket, ranges in (error.gone or {}).items():
            assert all(first < last for first, last in ranges), (
                f"`gone` of bucket {bucket!r} has an empty range: {ranges}"
            )
        return
    except Exception as error:
        raise AssertionError(
            f"a range whose first records expired is read {doing}: expected OffsetsExpired, "
            f"found {type(error).__name__}({str(error)[:200]})"
        ) from error
    expect(ordered(found.rows), rows, f"a range whose first records expired is read {doing}, without OffsetsExpired")
