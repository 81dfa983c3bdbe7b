"""Offsets: they only grow, and each stays that of its record."""

from __future__ import annotations

from collections.abc import Mapping

from laketier.spi import BucketBounds, LaketierError, LogOffsets, LogRange, TableLog
from laketier_conformance.expect import expect
from laketier_source_conformance.reads import (
    between,
    expect_ms,
    first_of,
    is_served_from_a_snapshot,
    latest,
    places,
    read_range,
    since,
    whole,
)
from laketier_source_conformance.system import Table, ordered, text_of

_LONG = 40


def test_an_empty_table_has_nothing_to_read(table: Table) -> None:
    expect(read_range(table.log()).rows, [], "an empty table is read")


def test_an_empty_range_has_no_splits(table: Table) -> None:
    log = table.log()
    expect(list(log.plan(LogRange(LogOffsets({}), LogOffsets({})))), [], "a range without buckets is planned")
    table.append()
    log = table.log()
    ends = latest(log.bounds())
    expect(list(log.plan(between(ends, ends))), [], "a range that ends where it begins is planned")


def test_offsets_grow_with_the_log(table: Table) -> None:
    log = table.log()
    ends: dict[str, int] = {}
    for _ in range(3):
        table.append()
        bounds = log.bounds()
        for bucket, end in ends.items():
            assert bucket in bounds, f"rows were appended, and `bounds` has bucket {bucket!r} no more: {bounds}"
            assert bounds[bucket].latest >= end, (
                f"rows were appended, and the latest offset of bucket {bucket!r} went back from {end} to "
                f"{bounds[bucket].latest}"
            )
        assert latest(bounds) != ends, f"rows were appended, and `bounds` is what it was: {bounds}"
        ends = latest(bounds)


def test_bounds_stay_while_nothing_is_appended(table: Table) -> None:
    table.append()
    log = table.log()
    before = log.bounds()
    expect(log.bounds(), before, "`bounds` is asked for once more, and nothing was appended")
    expect(table.log().bounds(), before, "`bounds` of a log that was opened anew, and nothing was appended")


def test_the_earliest_offset_stays_while_nothing_expires(table: Table) -> None:
    table.append()
    log = table.log()
    before = log.bounds()
    table.append()
    after = log.bounds()
    for bucket, each in before.items():
        expect(after[bucket].earliest, each.earliest, f"the earliest offset of bucket {bucket!r} after an append")
        expect(first_of(after[bucket]), first_of(each), f"where bucket {bucket!r} is begun, after an append")


def test_each_append_is_a_range_of_its_own(table: Table) -> None:
    log = table.log()
    table.append(1)
    start = {bucket: first_of(each) for bucket, each in log.bounds().items()}
    expect(ordered(read_range(log).rows), ordered(table.rows), "a log is read whose bounds were asked for")
    start = latest(log.bounds())
    for count in (1, 4, 7):
        rows = table.append(count)
        end = latest(log.bounds())
        splits = [] if end == start else log.plan(between(start, end))
        told = [(each.bucket, each.start, each.end) for each in splits if each.unordered]
        expect(told, [], "splits of rows that came after a reader began: `unordered`, as if they were of a snapshot")
        table.expect_rows(
            read_range(log, between(start, end)).rows,
            f"the range between the bounds before and after {count} rows were appended has these rows",
            rows,
        )
        start = end


def test_rows_of_one_bucket_come_in_the_order_of_their_append(table: Table) -> None:
    for _ in range(3):
        table.append(4)
    log = table.log()
    bounds = log.bounds()
    if len(bounds) == 1 and not is_served_from_a_snapshot(next(iter(bounds.values()))):
        expect(list(map(text_of, read_range(log).rows)), list(map(text_of, table.rows)), "rows come in their order")


def test_the_time_of_the_newest_record_is_in_milliseconds(table: Table) -> None:
    table.append()
    for bucket, each in table.log().bounds().items():
        if each.latest_at is not None:
            expect_ms(each.latest_at, f"`latest_at` of bucket {bucket!r}")


def test_the_time_of_the_newest_record_is_no_earlier_than_a_record(table: Table) -> None:
    """By it a service tells how far behind a table is."""
    table.append(1)
    log = table.log()
    told = {bucket: each.latest_at for bucket, each in log.bounds().items()}
    read_range(log)
    table.ask("append_bad")
    bounds = table.log().bounds()
    for each in read_range(log).bad:
        newest = bounds[each.bucket].latest_at
        if each.at is not None and newest is not None:
            assert newest >= each.at, f"`latest_at` is {newest}, and the record at {each.offset} is of {each.at}"
    for bucket, before in told.items():
        now = bounds[bucket].latest_at
        if before is not None and now is not None:
            assert now >= before, f"a record was appended, and `latest_at` of bucket {bucket!r} went back: {now}"


def test_rows_of_an_open_transaction_are_not_there_yet(table: Table) -> None:
    table.append(3)
    log = table.log()
    commit = table.ask("append_open", table.numbers(4))
    log.bounds()
    found = read_range(log, whole(table.log().bounds()))
    table.expect_rows(found.rows, "a log is read while a transaction with four rows is open")
    before = latest(log.bounds())
    table.rows += commit()
    more = table.append(2)
    rows = read_range(log, between(before, latest(log.bounds()))).rows
    missing = [row for row in ordered(table.rows[3:]) if row not in ordered(rows)]
    assert not missing, f"a transaction was committed after the bounds before it were read to: lost are {missing[:3]}"
    expect(len(rows), 4 + len(more), "rows of the range after a transaction that was open")
    table.expect_rows(read_range(table.log()).rows, "a log is read after a transaction was committed")


def test_a_bucket_may_come_later(table: Table) -> None:
    table.append(3)
    log = table.log()
    before = latest(log.bounds())
    table.ask("add_bucket")
    rows = table.append(6)
    after = log.bounds()
    added = set(after) - set(before)
    assert added, (
        f"a bucket was added, and rows appended to it: `bounds` of the same log still has only {sorted(before)}"
    )
    for bucket in added:
        if after[bucket].initial is None:
            expect(after[bucket].earliest, 0, f"where a bucket that came later begins, without `initial` ({bucket!r})")
    expect(set(before) - set(after), set(), "the buckets that are gone after one was added")
    table.expect_rows(read_range(log, since(before, after)).rows, "what came after a bucket was added", rows)
    table.expect_rows(read_range(table.log()).rows, "a log is read that has one more bucket")


def test_a_dozen_buckets_are_told_apart(table: Table) -> None:
    """Some have names of two digits, which sort between those of one."""
    for number in range(1, 12):
        table.ask("add_bucket")
        table.append(2 * number)  # so no two have as many rows
    table.expect_rows(read_range(table.log()).rows, "a log of a dozen buckets is read")


def test_offsets_that_no_reader_sees_are_passed_over(table: Table) -> None:
    table.append(3)
    before = latest(table.log().bounds())
    table.ask("leave_gap")
    log = table.log()
    table.expect_rows(read_range(log).rows, "a log is read that ends with offsets without records")
    end = latest(log.bounds())
    expect(read_range(log, between(before, end)).rows, [], "a range of offsets without records is read")
    rows = table.append(3)
    table.expect_rows(
        read_range(log, between(end, latest(log.bounds()))).rows, "what came after offsets without records", rows
    )
    table.expect_rows(read_range(table.log()).rows, "a log is read that has offsets without records")


def test_a_long_gap_is_passed_over(table: Table) -> None:
    """Of more offsets than a page has, where each is asked for by itself."""
    table.append(3)
    for _ in range(_LONG):
        table.ask("leave_gap")
    table.append(3)
    log = table.log()
    table.expect_rows(read_range(log).rows, "what came after a long gap, and before it, is read")


def test_gaps_anywhere_cost_no_row(table: Table) -> None:
    """Of several lengths, and where splits are cut."""
    for count in (3, 1, 4, 2, 5, 6):
        table.append(count)
        table.ask("leave_gap")
    table.append(1)
    log = table.log()
    bounds = log.bounds()
    table.expect_rows(read_range(log).rows, "a log is read that has gaps between its records")
    for bucket, each in bounds.items():
        if is_served_from_a_snapshot(each):
            continue
        one_by_one: list[str] = []
        offsets: list[int] = []
        for offset, rows in places(log, bucket, each.earliest, each.latest):
            offsets.append(offset)
            one_by_one += map(text_of, rows)
        found = read_range(log, between({bucket: each.earliest}, {bucket: each.latest})).rows
        expect(
            one_by_one, [text_of(row) for row in found], f"each offset of bucket {bucket!r}, which has gaps, by itself"
        )
        for start in sorted({offset + more for offset in offsets for more in (0, 1)}):
            rest = read_range(log, between({bucket: start}, {bucket: each.latest})).rows
            before = read_range(log, between({bucket: each.earliest}, {bucket: start})).rows
            expect(
                [text_of(row) for row in [*before, *rest]],
                [text_of(row) for row in found],
                f"bucket {bucket!r}, which has gaps, is read up to {start} and from there on",
            )


def test_compaction_moves_no_offset(table: Table) -> None:
    """What is left of a bucket stays at its offsets, and what is gone is passed over."""
    for _ in range(3):
        table.append(4)
    log = table.log()
    bounds = log.bounds()
    before = latest(bounds)
    offsets = _places(log, bounds)
    left = [dict(row) for row in table.ask("compact")]
    later = table.append(3)
    after = log.bounds()
    for bucket, end in before.items():
        assert after[bucket].latest >= end, f"a compaction took the latest offset of bucket {bucket!r} back from {end}"
    table.expect_rows(read_range(log, between(before, latest(after))).rows, "what came after a compaction", later)
    start = {bucket: each.earliest for bucket, each in bounds.items()}
    found = read_range(log, between(start, before)).rows
    table.expect_rows(found, "a range is read whose bucket was compacted", left)
    moved = {text: at for text, at in _places(log, bounds).items() if offsets.get(text) != at}
    expect(moved, {}, "rows that a compaction left, at another offset than before")


def _places(log: TableLog, bounds: Mapping[str, BucketBounds]) -> dict[str, tuple[str, int]]:
    """Each row, and its bucket and offset."""
    found: dict[str, tuple[str, int]] = {}
    for bucket, each in bounds.items():
        for offset, rows in places(log, bucket, each.earliest, each.latest):
            found |= {text_of(row): (bucket, offset) for row in rows}
    return found


def test_a_range_beyond_the_log_is_refused(table: Table) -> None:
    """As of a log that lost its newest records: what is not there yet would be taken for read."""
    table.append(4)
    log = table.log()
    bounds = log.bounds()
    end = {bucket: each.latest + 3 for bucket, each in bounds.items()}
    start = {bucket: first_of(each) for bucket, each in bounds.items()}
    try:
        found = read_range(log, between(start, end)).rows
    except (LaketierError, OSError):
        return
    raise AssertionError(
        f"a range is planned and read that ends beyond the log: expected an error, found {len(found)} rows, and the "
        "rows that come there later would be lost"
    )


def test_a_bucket_that_is_not_there_is_refused(table: Table) -> None:
    """As one that was dropped, with rows that a round was about to read."""
    table.append(4)
    log = table.log()
    ends = latest(log.bounds())
    names = [int(name) for name in ends if name.isdecimal()]
    gone = str(max(names) + 1) if names else f"{max(ends)}x"
    try:
        found = read_range(log, between({gone: 0}, {gone: 3})).rows
    except (LaketierError, OSError):
        return
    raise AssertionError(
        f"a range of bucket {gone!r} is planned and read, of a log that has {sorted(ends)} alone: expected an error, "
        f"found {len(found)} rows, and the rows of a bucket that is gone would be lost in silence"
    )


def test_bounds_have_buckets_without_rows(table: Table) -> None:
    table.append(3)
    before = set(table.log().bounds())
    table.ask("add_bucket")
    added = set(table.log().bounds()) - before
    assert added, f"a bucket was added that has no rows yet: `bounds` has empty buckets too, found {sorted(before)}"
