"""Records that are no rows are told with their offsets and bytes, and the read goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

from laketier.spi import BadRecord, FeatureNotSupported, IncompatibleData, LaketierError, fail_on_bad_record
from laketier_conformance.expect import expect, refused
from laketier_source_conformance.children import Processes
from laketier_source_conformance.reads import Read, begun_at, between, carried, read_range, since, whole
from laketier_source_conformance.records import NOT_STORABLE, OF_BEFORE, dated, identity, records_of_all, storable
from laketier_source_conformance.system import Table, text_of

DECODE, STORABLE = "the replay of dead letters", "telling the records of rows"


@pytest.mark.parametrize(
    ("before", "bad", "after"),
    [(0, 1, 0), (0, 1, 3), (3, 1, 0), (3, 1, 3), (2, 3, 2), (0, 3, 0)],
    ids=["alone", "first", "last", "between", "several", "several alone"],
)
def test_a_bad_record_is_told_and_the_read_goes_on(table: Table, before: int, bad: int, after: int) -> None:
    if before:
        table.append(before)
    values = [table.ask("append_bad") for _ in range(bad)]
    if after:
        table.append(after)
    log = table.log()
    found = read_range(log)
    table.expect_rows(found.rows, "the rows around a bad record")
    expect(len(found.bad), bad, "each bad record is told once")
    expect(sorted(each.value or b"" for each in found.bad), sorted(each or b"" for each in values), "its bytes")
    bounds = log.bounds()
    for each in found.bad:
        inside = each.bucket in bounds and 0 <= each.offset < bounds[each.bucket].latest
        assert inside, f"a bad record is within its bucket: found {each.offset} of {each.bucket!r} in {bounds}"
        assert each.error.strip(), "a bad record says why it is no row: its error is empty"


def test_bad_records_have_offsets_of_their_own(table: Table) -> None:
    """By which a dead letter is known again."""
    table.append(1)
    start = begun_at(table.log().bounds())
    for _ in range(3):
        table.ask("append_bad")
        table.append(1)
    log = table.log()
    bad = read_range(log, since(start, log.bounds())).bad
    expect(len(bad), 3, "each bad record is told once")
    places = [(each.bucket, each.offset) for each in bad]
    expect(sorted(set(places)), sorted(places), "bad records that were appended one by one have an offset each")


def test_a_range_of_a_bad_record_alone_tells_it(table: Table) -> None:
    table.append(2)
    start = begun_at(table.log().bounds())
    if table.system.has("leave_gap"):  # its place among the records is not its offset then
        table.ask("leave_gap")
    table.ask("append_bad")
    table.append(2)
    log = table.log()
    [told] = read_range(log, since(start, log.bounds())).bad
    again = read_range(log, between({told.bucket: told.offset}, {told.bucket: told.offset + 1})).bad
    found = [(each.offset, each.value) for each in again]
    expect(found, [(told.offset, told.value)], "the offset of a bad record is read by itself")
    end = log.bounds()[told.bucket].latest
    if told.offset + 1 < end:
        rest = read_range(log, between({told.bucket: told.offset + 1}, {told.bucket: end}))
        expect(rest.bad, [], "the range after a bad record is read")


def test_a_bad_record_ends_the_read_by_default(table: Table) -> None:
    table.append(1)
    table.ask("append_bad")
    table.append(1)
    log = table.log()
    with refused(IncompatibleData, "a log with a bad record is read, and nobody takes bad records"):
        for split in log.plan(whole(log.bounds())):
            list(carried(log).read(split))


def test_an_error_of_who_takes_bad_records_comes_through(table: Table) -> None:
    table.append(1)
    table.ask("append_bad")
    log = table.log()

    def stop(record: BadRecord) -> None:
        raise _Stopped(record.error)

    with refused(_Stopped, "who is told of a bad record raises, to stop the read"):
        for split in log.plan(whole(log.bounds())):
            list(carried(log).read(split, on_bad_record=stop))


def test_a_fresh_interpreter_tells_the_same_bad_record(table: Table, processes: Processes) -> None:
    table.append(2)
    value = table.ask("append_bad")
    table.append(2)
    log = table.log()
    found = processes.read(log.log, list(log.plan(whole(log.bounds()))))
    here = [(value, each.offset, each.at) for each in read_range(log).bad]
    expect([(each.value, each.offset, each.at) for each in found.bad], here, "bad records that another process tells")
    table.expect_rows(found.rows, "the rows that another process reads around a bad record")


def test_a_bad_record_keeps_its_key(table: Table) -> None:
    """Its replay may need it: the key of a table is often the key of its records."""
    table.append(1)
    key, value = table.ask("append_bad_with_key")
    table.append(1)
    log = table.log()
    bad = read_range(log).bad
    expect([(each.key, each.value) for each in bad], [(key, value)], "the key and the bytes of a bad record")
    again: list[BadRecord] = []
    try:
        list(log.decode(bad, on_bad_record=again.append))
    except FeatureNotSupported:
        return
    expect([(each.key, each.value) for each in again], [(key, value)], "the key of a bad record that is decoded again")


# -- replays -----------------------------------------------------------------------------------------------------------


@pytest.mark.may_refuse(DECODE)
def test_a_record_that_still_is_none_is_told_again(table: Table) -> None:
    table.append(1)
    table.ask("append_bad")
    table.ask("append_bad")
    log = table.log()
    bad = [replace(each, error=OF_BEFORE) for each in read_range(log).bad]
    again: list[BadRecord] = []
    rows = Read(list(log.decode(bad, on_bad_record=again.append))).rows
    expect(rows, [], "bad records are decoded again, and nothing was mended")
    expect(sorted(map(dated, again)), sorted(map(dated, bad)), "the bad records that `decode` tells, with their times")
    as_before = [each.offset for each in again if each.value is not None and each.error == OF_BEFORE]
    expect(as_before, [], "the bad records that `decode` tells with the error of before, and not their present one")
    with_value = [each for each in bad if each.value is not None]
    if with_value:
        with refused(IncompatibleData, "bad records are decoded, and nobody takes those that still are none"):
            list(log.decode(with_value, on_bad_record=fail_on_bad_record))


@pytest.mark.may_refuse(DECODE, STORABLE)
def test_decode_gives_the_rows_that_a_read_gives(table: Table) -> None:
    table.append(6)
    if table.system.has("append_texts"):  # bytes that are cut are no row any more
        table.rows += [dict(row) for row in table.ask("append_texts", ["long" * 20_000])]
    log = table.log()
    records = records_of_all(table)
    told: list[BadRecord] = []
    rows = Read(list(log.decode(records, on_bad_record=told.append))).rows
    if any(each.value is None for each in records):
        return  # a source that keeps no bytes of a row has nothing to decode
    expect([each.error for each in told], [], "records of rows are decoded, and told to be bad")
    table.expect_rows(rows, "the records of a log are decoded")
    one = Read(list(log.decode(records[2:3], on_bad_record=told.append))).rows
    expect(len(one), 1, "one record of a row is decoded")
    moved = BadRecord(**{**vars(records[3]), "bucket": records[2].bucket, "offset": records[2].offset})
    found = Read(list(log.decode([moved], on_bad_record=told.append))).rows
    assert found != one, f"bytes are decoded that the log has elsewhere: the row at their offset came of it, {found}"
    expect(list(log.decode([], on_bad_record=told.append)), [], "no records are decoded")


@pytest.mark.may_refuse(DECODE, STORABLE)
def test_records_that_are_equal_are_each_decoded(table: Table) -> None:
    table.append(1)
    table.rows += [dict(row) for row in table.ask("append_equal")]
    records = records_of_all(table)
    if any(each.value is None for each in records):
        return
    rows = Read(list(table.log().decode(records, on_bad_record=fail_on_bad_record))).rows
    table.expect_rows(rows, "the records of a log are decoded, two of which are equal")


@pytest.mark.may_refuse(DECODE, STORABLE)
def test_decode_accounts_for_each_record(table: Table) -> None:
    """Rows and records that are none, mixed, of several buckets: each has its first offset."""
    if table.system.has("add_bucket"):
        table.ask("add_bucket")
    table.append(2)
    table.ask("append_bad")
    table.append(2)
    bad = read_range(table.log()).bad
    records = records_of_all(table)
    if any(each.value is None for each in [*records, *bad]):
        return
    mixed = [records[0], *bad, *records[1:]]
    told: list[BadRecord] = []
    rows = Read(list(table.log().decode(mixed, on_bad_record=told.append))).rows
    expect(sorted(map(identity, told)), sorted(map(identity, bad)), "of rows and bad records, those that are told")
    table.expect_rows(rows, "of rows and bad records, the rows")


# -- rows that the lake can't store ------------------------------------------------------------------------------------


@pytest.mark.may_refuse(STORABLE)
def test_rows_that_can_be_stored_are_read_as_ever(table: Table) -> None:
    for _ in range(2):
        table.append(5)
    log = table.log()
    found = storable(table, list(log.plan(whole(log.bounds()))), set())
    table.expect_rows(found.rows, "a split is read, and the lake can store each row")
    expect(found.bad, [], "the records that are told where the lake can store each row")


@pytest.mark.parametrize("which", [[0], [4], [9], [3, 4, 5], range(10)], ids=["first", "middle", "last", "some", "all"])
@pytest.mark.may_refuse(STORABLE)
def test_rows_that_can_not_be_stored_are_left_out_and_told(table: Table, which: list[int]) -> None:
    for _ in range(2):
        table.append(5)
    refused_rows = [table.rows[at] for at in which]
    kept = [row for at, row in enumerate(table.rows) if at not in set(which)]
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    found = storable(table, splits, {text_of(row) for row in refused_rows})
    table.expect_rows(found.rows, "a split is read without the rows that the lake can't store", kept)
    expect(len(found.bad), len(refused_rows), "each record of a row that the lake can't store is told once")
    for each in found.bad:
        assert NOT_STORABLE in each.error, f"a row that the lake can't store says why: found {each.error!r}"
    told: list[BadRecord] = []
    if all(each.value is not None for each in found.bad):
        try:
            rows = Read(list(table.log().decode(found.bad, on_bad_record=told.append))).rows
        except FeatureNotSupported as refusal:
            if refusal.feature != DECODE:
                raise
            return
        table.expect_rows(rows, "the records of the rows that were left out are decoded", refused_rows)


@pytest.mark.may_refuse(DECODE, STORABLE)
def test_a_record_of_several_rows_is_left_out_whole(table: Table) -> None:
    """Its replay gives all of them: one that stays here would be there twice."""
    table.append(2)
    rows = list(table.ask("append_several", table.numbers(3)))
    table.rows += rows
    table.append(2)
    log = table.log()
    table.expect_rows(read_range(log).rows, "a log is read that has a record of three rows")
    splits = list(log.plan(whole(log.bounds())))
    found = storable(table, splits, {text_of(rows[1])})
    kept = [row for row in table.rows if row not in rows]
    table.expect_rows(found.rows, "the rows beside a record of three, one of which the lake can't store", kept)
    expect(len(found.bad), 1, "the records that are told, where the lake can't store a row of one")
    if found.bad[0].value is not None:
        told: list[BadRecord] = []
        replayed = Read(list(table.log().decode(found.bad, on_bad_record=told.append))).rows
        table.expect_rows(replayed, "a record of three rows is decoded", rows)


@pytest.mark.may_refuse(STORABLE)
def test_bad_records_are_told_beside_rows_that_can_not_be_stored(table: Table) -> None:
    table.append(3)
    table.ask("append_bad")
    table.append(3)
    log = table.log()
    bad = read_range(log).bad
    splits = list(log.plan(whole(log.bounds())))
    found = storable(table, splits, {text_of(table.rows[1]), text_of(table.rows[4])})
    kept = [row for at, row in enumerate(table.rows) if at not in (1, 4)]
    table.expect_rows(found.rows, "rows between a bad record and those that the lake can't store", kept)
    expect(len(found.bad), 3, "the records that are told: a bad one, and two of rows")
    missing = [each for each in map(identity, bad) if each not in map(identity, found.bad)]
    expect(missing, [], "the bad records that are not told beside rows which the lake can't store")
    told = [each for each in found.bad if identity(each) not in map(identity, bad)]
    if all(each.value is not None for each in told):
        try:
            rows = Read(list(table.log().decode(told, on_bad_record=fail_on_bad_record))).rows
        except FeatureNotSupported:
            return
        left_out = [table.rows[1], table.rows[4]]
        table.expect_rows(rows, "the records told of rows beside a bad record are decoded", left_out)


@pytest.mark.may_refuse(STORABLE)
def test_who_asks_for_storable_rows_gets_all_columns(table: Table) -> None:
    table.append(3)
    log = table.log()
    seen: list[list[str]] = []

    def look(batch: pa.RecordBatch) -> Mapping[int, str]:
        seen.append(batch.schema.names)
        return {}

    for split in log.plan(whole(log.bounds())):
        list(carried(log).read_storable(split, look, on_bad_record=fail_on_bad_record))
    assert seen, "rows were read by `read_storable`, and its argument was asked about none of them"
    for names in seen:
        expect(names, log.table.schema.names, "the columns of a batch that `read_storable` asks about")


class _Stopped(LaketierError):
    """Raised by the test."""
