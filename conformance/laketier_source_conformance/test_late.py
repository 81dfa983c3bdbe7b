"""Rows that come late, at once, or beside others: each is read once, whatever was read before."""

from __future__ import annotations

from contextlib import suppress

from laketier.spi import LaketierError, TableLog
from laketier_conformance.expect import expect
from laketier_conformance.host_clocks import off
from laketier_source_conformance.harness import Row
from laketier_source_conformance.reads import between, first_of, latest, read_range, since
from laketier_source_conformance.system import Table

_QUICKLY = 20
_AT_ONE_MOMENT = 3


def test_appends_in_quick_succession_are_told_apart(table: Table) -> None:
    """Each look lies between two of them."""
    found = _read_as_they_come(table, table.log(), _QUICKLY)
    table.expect_rows(
        found, f"{_QUICKLY} rows are appended one after the other, each is read at once, and found each once"
    )


def test_appends_of_one_moment_are_told_apart(table: Table) -> None:
    """The clock that the source and the harness see stands still, as between two ticks, or where it is set back."""
    log = table.log()
    with off(0, table.system.packages(log), stopped=True):
        found = _read_as_they_come(table, log, _AT_ONE_MOMENT)
    table.expect_rows(
        found,
        f"{_AT_ONE_MOMENT} rows are appended within one moment of this host's clock, each is read at once, and found "
        "each once",
    )


def _read_as_they_come(table: Table, log: TableLog, count: int) -> list[Row]:
    """So many rows, each appended and read by itself."""
    found: list[Row] = []
    start = {bucket: first_of(each) for bucket, each in log.bounds().items()}
    for _ in range(count):
        table.append(1)
        bounds = log.bounds()
        found += read_range(log, since(start, bounds)).rows
        start = latest(bounds)
    return found


def test_a_record_that_comes_late_moves_no_other(table: Table) -> None:
    """It sorts before others, which were read already."""
    for _ in range(3):
        table.append(2)
    log = table.log()
    before = latest(log.bounds())
    found = read_range(log).rows
    table.rows += [dict(row) for row in table.ask("append_late", table.numbers(2))]
    for one in (log, table.log()):
        later = read_range(one, since(before, one.bounds())).rows
        table.expect_rows([*found, *later], "rows that came late, beside those that were read before")
    table.expect_rows(read_range(table.log()).rows, "a log is read to which rows came late")


def test_rows_beside_an_open_transaction_cost_none(table: Table) -> None:
    """What is appended while a transaction is open may have offsets behind those of the transaction."""
    table.append(3)
    log = table.log()
    commit = table.ask("append_open", table.numbers(4))
    table.append(2)
    start = {bucket: first_of(each) for bucket, each in log.bounds().items()}
    middle = latest(log.bounds())
    found = read_range(log, between(start, middle)).rows
    table.rows += commit()
    table.append(1)
    found += read_range(log, since(middle, log.bounds())).rows
    table.expect_rows(
        found, "a log is read while a transaction is open, and the rest once it was committed: rows, each once"
    )


def test_what_is_still_written_is_read_once_it_is_whole(table: Table) -> None:
    """A half of a record is none, and no bad one: the whole one may get the same offset."""
    table.append(3)
    log = table.log()
    start = {bucket: first_of(each) for bucket, each in log.bounds().items()}
    finish = table.ask("append_begun", table.numbers(2))
    found, middle = list[Row](), start
    with suppress(LaketierError, OSError):  # a source may wait for the writer
        bounds = log.bounds()
        read = read_range(log, since(start, bounds))
        expect([each.error for each in read.bad], [], "bad records of a log to which somebody is writing")
        found, middle = read.rows, latest(bounds)
    table.rows += finish()
    table.append(1)
    read = read_range(log, since(middle, log.bounds()))
    expect([each.error for each in read.bad], [], "bad records of a log once what was written to it is whole")
    table.expect_rows([*found, *read.rows], "a log is read in the midst of a write and after it: rows, each once")


def test_a_bucket_that_is_closed_keeps_its_rows(table: Table) -> None:
    """Until they expire, be it one row: nobody may have read it."""
    table.append(1)
    log = table.log()
    before = log.bounds()
    table.ask("close_bucket")
    table.append(6)
    for doing, one in (("the same log", log), ("a log that was opened anew", table.log())):
        after = one.bounds()
        lost = {bucket: each for bucket, each in before.items() if bucket not in after}
        assert not lost, f"a bucket with rows was closed, and `bounds` of {doing} has it no more: {lost}"
        table.expect_rows(read_range(one).rows, f"{doing} is read after a bucket was closed")
