"""More than a page of an answer has: each listing and each read is whole."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice

from laketier.spi import LaketierError
from laketier_conformance.expect import HarnessFailed, expect
from laketier_conformance.host_clocks import off
from laketier_source_conformance.reads import (
    Read,
    begun,
    begun_at,
    carried,
    is_served_from_a_snapshot,
    read_range,
    since,
    whole,
)
from laketier_source_conformance.system import CannotBe, System, Table, ordered

_TABLES = 1_100
"""Stores and services list a thousand names at once, and tell where to go on."""
_BUCKETS = 101
_BAD = 120
"""The first page of a hundred has bad records alone."""
_ROWS = 1_100
_A_DAY = 24 * 3600 * 1000
"""In ms."""


def test_more_tables_than_a_page_has_are_listed(system: System) -> None:
    names = [f"t{number}" for number in range(_TABLES)]
    system.call("make_many", names)
    found = system.source().list_tables()
    made = sorted(system.harness.listed(name) for name in names)
    missing = [name for name in made if name not in set(found)]
    assert not missing, (
        f"{_TABLES} tables were made, and `list_tables` leaves out {len(missing)} of them: the first is {missing[0]!r}"
    )
    expect(len(set(found)), len(found), f"`list_tables` gives each of {_TABLES} names once")
    expect(found, sorted(found), f"`list_tables` gives {_TABLES} names in order")


def test_more_buckets_than_a_page_has_are_read(table: Table) -> None:
    for _ in range(_BUCKETS - 1):
        table.ask("add_bucket")
    table.append(2 * _BUCKETS)
    log = table.log()
    bounds = log.bounds()
    assert len(bounds) >= _BUCKETS, f"a table has {_BUCKETS} buckets, and `bounds` has {len(bounds)} of them"
    table.expect_rows(read_range(log, whole(bounds)).rows, f"a log of {_BUCKETS} buckets is read")


def test_many_bad_records_are_each_told(table: Table) -> None:
    """One that is told nowhere is lost."""
    bounds = table.log().bounds()
    if any(map(is_served_from_a_snapshot, bounds.values())):  # whose rows have no offsets of their own
        table.append(1)
        bounds = table.log().bounds()
    for _ in range(_BAD):
        table.ask("append_bad")
    rows = table.append(2)
    log = table.log()
    found = read_range(log, since(begun_at(bounds), log.bounds()))
    expect(len({(each.bucket, each.offset) for each in found.bad}), _BAD, f"of {_BAD} bad records, those that are told")
    table.expect_rows(found.rows, f"the rows around {_BAD} bad records", rows)


def test_a_read_that_takes_a_day_gives_each_row(table: Table) -> None:
    """Its writer may wait for a store, and a host may sleep: a limit of time is no end of the split."""
    count = table.append_pages(40)
    log = table.log()
    found, others = begun(log)
    with off(_A_DAY, table.system.packages(log)):
        try:
            found += sum(batch.num_rows for batch in others)
        except (LaketierError, OSError):
            return
    expect(found, count, "rows of a read in whose midst this host's clock goes on by a day, and no error")


def test_a_compaction_in_the_midst_of_a_read_costs_no_other_row(table: Table) -> None:
    """Where the next page begins tells an offset, and not how many records came before: there are fewer now."""
    table.append_pages(40)
    log = table.log()
    names = log.table.schema.names
    there = Counter(ordered(read_range(log).rows))
    batches = chain.from_iterable([carried(log).read(split) for split in log.plan(whole(log.bounds()))])
    found = list(islice(batches, 1))
    try:
        left = [{name: row.get(name) for name in names} for row in table.ask("compact")]
    except HarnessFailed as failed:
        raise CannotBe(f"compact: while a read is not over, {failed}") from failed
    try:
        found += batches
    except (LaketierError, OSError):
        return
    rows = Counter(ordered(Read(found).rows))
    lost = Counter(ordered(left)) - rows
    expect(sorted(lost), [], "rows that a compaction left in the midst of a read, which leaves them out")
    expect(sorted(rows - there), [], "rows of a read in whose midst a compaction came, more often than they were there")


def test_pages_behind_a_gap_are_read_once(table: Table) -> None:
    """Where the next page begins tells the last record of this one, and not how many there were."""
    table.append(3)
    table.ask("leave_gap")
    count = table.append_pages(_ROWS)
    table.ask("leave_gap")
    count += len(table.append(3))
    rows = read_range(table.log()).rows
    expect(len(rows), count, f"rows of a log that has gaps before and behind {count - 6} of them")
    # Rows of `append_many` have no numbers of the suite's: some may be equal to one that `append` brought.
    lost = Counter(ordered(table.rows)) - Counter(ordered(rows))
    expect(sorted(lost), [], "rows of a log that has gaps, and which a read of it leaves out")
