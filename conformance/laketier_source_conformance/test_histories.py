"""What tells one history of a table from another: its stamp, its identity, and the former names of its columns."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import suppress

import pytest

from laketier.rounds.checked_log import CheckedLog
from laketier.spi import LaketierError, LogOffsets, LogRange, LogSplit, OffsetsExpired, TableLog, stamps_differ
from laketier_conformance.expect import expect, goes_well
from laketier_source_conformance.children import Processes
from laketier_source_conformance.harness import Row
from laketier_source_conformance.reads import (
    between,
    carried,
    is_served_from_a_snapshot,
    latest,
    read_range,
    read_splits,
    since,
    whole,
)
from laketier_source_conformance.system import CannotBe, Table, ordered, text_of


def _end(table: Table) -> LogOffsets:
    return LogOffsets(latest(table.log().bounds()))


def test_a_stamp_stays_as_the_log_grows(table: Table) -> None:
    table.append(3)
    end = _end(table)
    log = table.log()
    first = log.stamp(end)
    if first is None:
        raise CannotBe("stamp: the source has none")
    for doing, found in {
        "again": log.stamp(end),
        "of its text, by a log that was opened anew": table.log().stamp(LogOffsets.from_text(end.to_text())),
    }.items():
        expect(found, first, f"the stamp of a position, {doing}")
    table.append(4)
    for doing, found in {
        "by the same log": log.stamp(end),
        "by a log that was opened anew": table.log().stamp(end),
    }.items():
        expect(found, first, f"the stamp of a position after more rows came, {doing}")
    other = table.log().stamp(_end(table))
    assert other != first, f"two positions of a log have the same stamp: {first!r}"


@pytest.mark.parametrize(
    "what", ["compact", "expire", "expire_all", "rename_column", "add_bucket", "leave_gap", "update_rows"]
)
def test_a_stamp_tells_no_other_history_where_there_is_none(table: Table, what: str) -> None:
    """Another stamp, or an error, stops a table for good: so what is not known any more has none."""
    positions = []
    for _ in range(3):
        table.append(4)
        positions.append(_end(table))
    kept = {position: table.log().stamp(position) for position in positions}
    if all(stamp is None for stamp in kept.values()):
        raise CannotBe("stamp: the source has none")
    log = table.log()
    table.ask(what)
    for doing, one in (("by the same log", log), ("by a log that was opened anew", table.log())):
        for position, before in kept.items():
            with goes_well(f"the stamp of {position.to_text()} is asked for after `{what}`, {doing}"):
                found = one.stamp(position)
            assert not stamps_differ(before, found), (
                f"the stamp of {position.to_text()}, {doing}, is another one after `{what}` of the harness, as if the "
                f"log had another history: expected {before!r}, a part of it or None, found {found!r}"
            )


def test_a_stamp_is_the_same_in_each_process(table: Table, processes: Processes) -> None:
    """A round stores it, and the next one may be run on another machine, after months."""
    table.append(3)
    end = _end(table)
    first = table.log().stamp(end)
    if first is None:
        raise CannotBe("stamp: the source has none")
    for doing, child in (("another process", processes.take()), ("a fresh interpreter", processes.fresh())):
        found = processes.ask_of(child, "stamp", position=end.to_text(), **table.named)["stamp"]
        expect(found, first, f"the stamp of a position, by {doing}")


def test_a_stamp_is_another_in_another_history(table: Table) -> None:
    """Put back from a backup, and grown again to the same offsets, in each bucket."""
    if table.system.has("add_bucket"):
        table.ask("add_bucket")
    table.append(3)
    at_backup = _end(table)  # a source that numbers what it finds has done so before the backup
    back = table.ask("put_back")
    kept = table.log().stamp(at_backup)
    table.append(4)
    end = _end(table)
    lost, known = table.log().stamp(end), table.log().stamp(at_backup)
    grown = [LogOffsets({**at_backup, bucket: last}) for bucket, last in end.items() if last > at_backup.get(bucket, 0)]
    lost_of_buckets = {position: table.log().stamp(position) for position in grown}
    back()
    expect(table.log().stamp(at_backup), kept, "the stamp of what a backup had, after it was put back")
    table.append(4)
    table.append(4)
    again = table.log().stamp(at_backup)
    assert not stamps_differ(known, again), (
        f"the stamp of {at_backup.to_text()} is made of what lies before it, which a backup had: it was {known!r}, and "
        f"after the table was put back and has grown again {again!r}"
    )
    if lost is None:
        raise CannotBe("stamp: the source has none")
    found = table.log().stamp(end)
    assert found is None or found != lost, (
        f"a table was put back from a backup and has grown again: the stamp of {end.to_text()} is the same, {lost!r}, "
        "and other records lie before it"
    )
    for position, before in lost_of_buckets.items():
        found = table.log().stamp(position)
        assert found is None or found != before, (
            f"a table was put back from a backup and has grown again: the stamp of {position.to_text()}, with one "
            f"bucket beyond the backup, is the same, {before!r}"
        )


def test_rows_of_a_table_that_was_put_back_are_those_of_the_backup(table: Table) -> None:
    table.append(3)
    kept = list(table.rows)
    back = table.ask("put_back")
    table.append(4)
    read_range(table.log())
    back()
    table.expect_rows(read_range(table.log()).rows, "a table that was put back from a backup is read", kept)


def test_a_table_that_is_made_again_has_another_identity(table: Table) -> None:
    table.append(3)
    old, end = table.log(), _end(table)
    splits, stamp = list(old.plan(whole(old.bounds()))), old.stamp(end)
    table.expect_rows(read_splits(carried(old), splits).rows, "a table is read before it is made again")
    table.ask("make_again")
    table.rows.clear()
    new = table.log()
    assert new.table.table_id != old.table.table_id, (
        f"a table was dropped and made again, and its `table_id` is the same: {new.table.table_id!r}"
    )
    table.append(3)  # as many as before: what is kept of the old table by its name and offsets would be given again
    table.expect_rows(read_range(table.log()).rows, "a table that was dropped and made again is read")
    table.append(6)  # so that places in its files, which are of other lengths, lie within it, too
    expect(old.table, old.log.table, "`TableLog.table` of a log whose table was dropped and made again")
    told = f"its task's `identify` and `stamp` tell it: `table_id` was {old.table.table_id!r}, the stamp {stamp!r}"
    expect(_mixed_in(table, old, splits, stamp, end), [], f"rows of a new table by splits of the old one, or {told}")


def _mixed_in(
    table: Table, old: TableLog, splits: Sequence[LogSplit], stamp: str | None, end: LogOffsets
) -> Sequence[str]:
    """The rows of the new table that a task gives as those of the old one, and nobody is told. The union read of Spark
    has no last look on the driver: its tasks ask at their end, as here."""
    task = carried(old)
    try:
        rows = ordered(read_splits(task, splits).rows)
        if task.identify() not in (None, old.table.table_id) or stamps_differ(stamp, task.stamp(end)):
            return []
    except Exception:  # noqa: BLE001 - any error will do
        return []
    return [row for row in rows if row in ordered(table.rows)]


def test_an_identity_is_the_same_in_each_process(table: Table) -> None:
    table.append(1)
    log = table.log()
    expect(carried(log).table.table_id, log.table.table_id, "`table_id` of a log out of a pickle")
    if (told := carried(log).identify()) is not None:  # another text would stop each union read
        expect(told, log.table.table_id, "`identify` of a log out of a pickle, whose table is what it was")
    expect(pickle.loads(pickle.dumps(log.table)), log.table, "a LogTable out of a pickle")  # noqa: S301 - our own bytes


def test_changes_come_in_their_order_and_after_their_snapshot(table: Table) -> None:
    """The last change of a key counts. A deletion that is passed over leaves its row in the lake for good."""
    log = table.log()
    key, kind = log.table.primary_key, log.table.change_column
    if kind is None:
        raise CannotBe("change_rows: the table has no column of the kinds of changes")
    table.append(6)
    before = log.bounds()
    splits, kept = list(log.plan(whole(before))), list(table.rows)
    changes = [dict(row) for row in table.ask("change_rows")]
    came = [*changes, *table.append(1)]
    wanted, doing = since(latest(before), log.bounds()), "the changes that came after a reader began"
    found = read_range(log, wanted).rows
    if key:
        expect(_by_key(found, key), _by_key(came, key), f"of each key, {doing}")
    else:
        table.expect_rows(found, doing, came)
        _expect_order(log, wanted, came)
    with suppress(OffsetsExpired):  # of a snapshot that was taken away
        found = read_splits(carried(log), splits).rows
        table.expect_rows(found, "a range is read that was planned before rows were changed", kept)
    if key and any(is_served_from_a_snapshot(each) for each in before.values()):
        last = {key_of: texts[-1] for key_of, texts in _by_key([*kept, *came], key).items()}
        gone = [row for row in changes if str(row[kind]) == "-D"]
        left = sorted(each for each in last if each not in _by_key(gone, key))
        expect(
            sorted(_by_key(read_range(table.log()).rows, key)), left, "the keys of a snapshot after rows were changed"
        )


def _expect_order(log: CheckedLog, wanted: LogRange, came: Sequence[Row]) -> None:
    """Without a key nothing tells the order of changes but the offsets of a bucket; those of others have no part in
    it."""
    for bucket, (start, end) in wanted.by_bucket.items():
        found = list(map(text_of, read_range(log, between({bucket: start}, {bucket: end})).rows))
        left = iter(map(text_of, came))
        assert all(each in left for each in found), (
            f"the changes of bucket {bucket!r} of a table without a key come in their order: expected some of "
            f"{list(map(text_of, came))}, found {found}"
        )


def _by_key(rows: Sequence[Row], key: Sequence[str]) -> dict[str, list[str]]:
    """The rows of each key, in their order."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(text_of({name: row[name] for name in key}), []).append(text_of(row))
    return found


def test_an_input_that_is_replaced_is_told(table: Table) -> None:
    """By other rows of as many bytes. A range that was read must not be others the next time, without a word."""
    for _ in range(2):
        table.append(3)
    log = table.log()
    wanted, stamp = whole(log.bounds()), log.stamp(_end(table))
    table.ask("replace_input")
    one = table.log()
    try:
        found = read_range(one, wanted).rows
    except LaketierError:
        return
    if one.log.table.table_id == log.log.table.table_id and one.stamp(LogOffsets(wanted.end)) == stamp:
        table.expect_rows(found, "a part of the input was replaced by one of equal size: the range, without an error")


def test_a_renamed_column_is_told_by_its_former_name(table: Table) -> None:
    table.append(3)
    before = table.log()
    identity = before.table.table_id
    old, new = table.ask("rename_column")
    log = table.log()
    expect(log.table.table_id, identity, "`table_id` after a column was renamed")
    assert new in log.table.schema.names, f"a column was renamed to {new!r}, and the table has {log.table.schema.names}"
    assert old not in log.table.schema.names, f"the column {old!r} was renamed, and the table still has it"
    expect(tuple(log.table.former_names.get(new, ())), (old,), f"`former_names` of the renamed column {new!r}")
    expect(set(log.table.former_names) - set(log.table.schema.names), set(), "columns of `former_names` that are none")
    assert old in before.table.schema.names, "`TableLog.table` is the table as it was when the log was opened"


def test_a_column_that_is_added_is_read(table: Table) -> None:
    """By a source that had opened the table before: a service has one for months."""
    table.append(3)
    source, options = table.system.source(), dict(table.system.harness.table_options)
    before = CheckedLog.of(source.open(table.listed, options), table.listed)
    table.system.closes(before)
    names = before.table.schema.names
    read_range(before)
    rows = table.ask("add_column")
    log = CheckedLog.of(source.open(table.listed, options), table.listed)
    table.system.closes(log)
    expect(log.table.table_id, before.table.table_id, "`table_id` after a column was added")
    expect(sorted(log.table.schema.names), sorted(rows[-1]), "the columns of a log after one was added")
    table.rows = [{name: row.get(name) for name in log.table.schema.names} for row in rows]
    table.expect_rows(read_range(log).rows, "a log is read that was opened after a column was added")
    expect(before.log.table.schema.names, names, "`TableLog.table` is the table as it was when the log was opened")
