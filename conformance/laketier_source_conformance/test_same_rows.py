"""The same range gives the same rows: again, elsewhere, later, and cut in any way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from laketier.spi import BadRecord, LogOffsets, LogRange, TableLog
from laketier_conformance.expect import expect
from laketier_source_conformance.children import Processes
from laketier_source_conformance.harness import Row
from laketier_source_conformance.reads import (
    between,
    carried,
    first_of,
    is_served_from_a_snapshot,
    latest,
    places,
    read_range,
    read_splits,
    whole,
)
from laketier_source_conformance.system import Table, text_of

_DRAWS = 12


def test_each_row_is_read_once(table: Table) -> None:
    for count in (3, 1, 8):
        table.append(count)
    table.expect_rows(read_range(table.log()).rows, "all of a log is read")


def test_the_same_range_gives_the_same_rows_again(table: Table) -> None:
    table.append(9)
    log = table.log()
    wanted = whole(log.bounds())
    first = read_range(log, wanted).rows
    for doing, found in {
        "by the same log": read_range(log, wanted, task=lambda one: one).rows,
        "by a log out of a pickle": read_range(log, wanted).rows,
        "by a log out of the pickle of a pickle": read_range(log, wanted, task=lambda one: carried(carried(one))).rows,
        "by a log that was opened anew": read_range(table.log(), wanted).rows,
        "by the splits of an earlier plan": read_splits(carried(log), [*log.plan(wanted)]).rows,
    }.items():
        expect(_texts(found), _texts(first), f"the same range is read again, {doing}")


def test_a_fresh_interpreter_reads_the_same_rows(table: Table, processes: Processes) -> None:
    table.append(9)
    log = table.log()
    wanted = whole(log.bounds())
    found = processes.read(log.log, log.plan(wanted)).rows
    expect(_texts(found), _texts(read_range(log, wanted).rows), "a range is read in an interpreter of its own")
    table.expect_rows(found, "a log is read in an interpreter of its own")


@pytest.mark.parametrize("days", [-4000, 4000], ids=["behind", "ahead"])
def test_a_host_with_another_clock_reads_the_same_rows(table: Table, processes: Processes, days: int) -> None:
    table.append(9)
    log = table.log()
    wanted = whole(log.bounds())
    packages = sorted(table.system.packages(log))
    ahead = days * 24 * 3600 * 1000
    found = processes.read(log.log, log.plan(wanted), processes.take(), ahead=ahead, packages=packages).rows
    expect(
        _texts(found), _texts(read_range(log, wanted).rows), f"a range is read by a host whose clock is {days} days off"
    )


def test_two_processes_read_at_once(table: Table, processes: Processes) -> None:
    table.append(20)
    log = table.log()
    splits = log.plan(whole(log.bounds()))
    some = [processes.fresh(), processes.fresh()]
    answers = [processes.begin(child, log.log, splits) for child in some]
    for child, answer in zip(some, answers, strict=True):
        table.expect_rows(processes.ended(child, answer).rows, "a log is read by two processes at once")


def test_a_range_stays_as_the_log_grows(table: Table) -> None:
    table.append(6)
    log = table.log()
    wanted = whole(log.bounds())
    splits = list(log.plan(wanted))
    before = read_range(log, wanted).rows
    for count in (4, 9):
        table.append(count)
        for doing, found in {
            "planned before": read_splits(carried(log), splits).rows,
            "planned anew by the same log": read_range(log, wanted).rows,
            "planned by a log that was opened later": read_range(table.log(), wanted).rows,
        }.items():
            expect(_texts(found), _texts(before), f"a range is read after {count} more rows came, {doing}")


def test_a_driver_that_knows_a_range_by_its_text_reads_the_same_rows(table: Table, processes: Processes) -> None:
    """As one that begins after another one died: it has the offsets of a watermark, and nothing else."""
    table.append(6)
    first = whole(table.log().bounds())
    table.append(4)
    for wanted in (first, between(first.end, latest(table.log().bounds()))):
        texts = {"start": wanted.start.to_text(), "end": wanted.end.to_text()}
        rows = processes.read_range(table.named, **texts).rows
        expect(
            _texts(rows),
            _texts(read_range(table.log(), wanted).rows),
            "a range is planned and read by a driver of its own, which knows it by its text alone",
        )


def test_rows_that_are_equal_are_all_there(table: Table) -> None:
    table.append(2)
    table.rows += [dict(row) for row in table.ask("append_equal")]
    table.append(1)
    table.expect_rows(read_range(table.log()).rows, "a log is read that has two records which are equal")


def test_a_bad_record_is_told_again_and_the_same(table: Table) -> None:
    table.append(2)
    table.ask("append_bad")
    table.append(2)
    log = table.log()
    wanted = whole(log.bounds())
    first = read_range(log, wanted)
    expect(_told(read_range(log, wanted).bad), _told(first.bad), "the bad records of a range that is read again")
    table.append(3)
    found = read_range(table.log(), wanted)
    expect(_told(found.bad), _told(first.bad), "the bad records of a range that is read after more rows came")


def test_a_range_is_the_sum_of_its_parts(table: Table, draw: random.Random) -> None:
    """For ends that are drawn, also where no record has that offset."""
    for count in (4, 1, 9, 3):
        table.append(count)
    log = table.log()
    bounds = log.bounds()
    for first, middle, last in _draws(log, draw):
        parts = [read_range(log, LogRange(*pair)).rows for pair in pairwise((first, middle, last))]
        by_bucket = _by_bucket(log, LogRange(first, last))
        halves = [_by_bucket(log, LogRange(*pair)) for pair in pairwise((first, middle, last))]
        for bucket, rows in by_bucket.items():
            order = sorted if is_served_from_a_snapshot(bounds[bucket]) else list
            expect(
                order(text for half in halves for text in half.get(bucket, [])),
                order(rows),
                f"bucket {bucket!r} is read from {first.get(bucket, 0)} to {middle.get(bucket, 0)} and from there to "
                f"{last[bucket]}, which together are its rows from {first.get(bucket, 0)} to {last[bucket]}",
            )
        expect(sum(map(len, parts)), sum(map(len, by_bucket.values())), "the rows of two ranges that meet")


def test_a_range_is_cut_at_each_offset(table: Table) -> None:
    table.append(7)
    log = table.log()
    wanted = whole(log.bounds())
    rows: list[Row] = []
    for bucket, end in wanted.end.items():
        for _, of_one in places(log, bucket, wanted.start[bucket], end):
            rows += of_one
    table.expect_rows(rows, "each offset of a log is read by itself")


def test_buckets_are_read_one_by_one(table: Table) -> None:
    table.append(9)
    log = table.log()
    bounds = log.bounds()
    rows: list[Row] = []
    for bucket, each in bounds.items():
        rows += read_range(log, between({bucket: first_of(each)}, {bucket: each.latest})).rows
    table.expect_rows(rows, "each bucket of a log is read by itself")


def test_each_split_is_read_by_a_task_of_its_own_in_any_order(table: Table) -> None:
    for _ in range(4):
        table.append(5)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    rows = [row for split in reversed(splits) for row in read_splits(carried(log), [split]).rows]
    table.expect_rows(rows, "the splits of a plan are read from the last to the first, each by a task of its own")


def _draws(log: TableLog, draw: random.Random) -> Iterator[list[LogOffsets]]:
    bounds = log.bounds()
    for _ in range(_DRAWS):
        cuts = {
            bucket: sorted(draw.randint(first_of(each), each.latest) for _ in range(3))
            for bucket, each in bounds.items()
        }
        yield [LogOffsets({bucket: cut[at] for bucket, cut in cuts.items()}) for at in range(3)]


def _by_bucket(log: TableLog, wanted: LogRange) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {bucket: [] for bucket in wanted.end}
    if wanted.is_empty:
        return found
    for split in log.plan(wanted):
        found[split.bucket] += _texts(read_splits(carried(log), [split]).rows)
    return found


def _texts(rows: list[Row]) -> list[str]:
    return list(map(text_of, rows))


def _told(bad: list[BadRecord]) -> list[tuple[str, int, bytes | None, bytes | None, int | None]]:
    return [(each.bucket, each.offset, each.value, each.key, each.at) for each in bad]
