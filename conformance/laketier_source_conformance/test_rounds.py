"""Rounds of the source into a lake table: each row once, whatever was killed."""

from __future__ import annotations

import pytest

from laketier.spi import LogOffsets
from laketier_conformance.children import ChildDied
from laketier_conformance.expect import expect
from laketier_source_conformance.children import Processes
from laketier_source_conformance.reads import latest
from laketier_source_conformance.system import Table, ordered
from laketier_source_conformance.tiered import Tiered

_SMALL = 2
"""Rows of a round, about."""
_MOST = 40
"""Rounds until there is nothing left, or they go nowhere."""


@pytest.fixture
def tiered(table: Table, lake_format: str | None, processes: Processes) -> Tiered:
    """The lake table that the rounds of the table are written to."""
    return Tiered(table, lake_format, processes)


def test_rounds_bring_each_row_once(table: Table, tiered: Tiered) -> None:
    for count in (5, 1, 7):
        table.append(count)
        tiered.run(_SMALL, _MOST)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table after small rounds")
    expect(tiered.run(_SMALL, _MOST), 0, "rounds that were published after all rows were there")


def test_one_round_of_all_is_as_good_as_many(table: Table, tiered: Tiered) -> None:
    for count in (5, 1, 7):
        table.append(count)
    tiered.run(None, _MOST)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table after one round")


def test_rounds_go_on_after_each_kill(table: Table, tiered: Tiered) -> None:
    """By SIGKILL, at each point that a round passes, with rows that come meanwhile."""
    table.append(4)
    points = tiered.points()
    table.append(4)
    for point in points:
        table.append(3)
        try:
            tiered.run(_SMALL, _MOST, failpoints=f"{point}=kill@2")
        except ChildDied:
            continue
    tiered.run(_SMALL, _MOST)
    found = tiered.rows
    expect(ordered(found), tiered.awaited, f"rows of the lake table after a kill at each of {', '.join(points)}")
    others = tiered.rows_of_others()
    if others is not None:
        expect(ordered(others), tiered.awaited, "the same rows, as pyarrow alone reads the files of the lake table")
    expect(tiered.position(), LogOffsets(latest(table.log().bounds())), "where the lake table has read up to")


def test_bad_records_become_dead_letters(table: Table, tiered: Tiered) -> None:
    table.append(3)
    value = table.ask("append_bad")
    table.append(3)
    tiered.run(_SMALL, _MOST, dead_letters=True)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table around a bad record")
    expect([each.value for each in tiered.dead_letters()], [value], "the dead letters of the lake table")


def test_rows_of_an_open_transaction_come_once(table: Table, tiered: Tiered) -> None:
    table.append(3)
    commit = table.ask("append_open", table.numbers(3))
    tiered.run(_SMALL, _MOST)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table beside an open transaction")
    table.rows += commit()
    table.append(2)
    tiered.run(_SMALL, _MOST)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table after a transaction was committed")


def test_a_bucket_that_comes_later_comes_whole(table: Table, tiered: Tiered) -> None:
    table.append(3)
    tiered.run(_SMALL, _MOST)
    table.ask("add_bucket")
    table.append(6)
    tiered.run(_SMALL, _MOST)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table after its log got one more bucket")


def test_a_gap_is_passed(table: Table, tiered: Tiered) -> None:
    table.append(3)
    tiered.run(_SMALL, _MOST)
    for _ in range(3):
        table.ask("leave_gap")
    tiered.run(_SMALL, _MOST)
    table.append(3)
    tiered.run(_SMALL, _MOST)
    expect(ordered(tiered.rows), tiered.awaited, "rows of the lake table around offsets without records")
