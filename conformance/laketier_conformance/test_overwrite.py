"""Overwriting: all rows change in one atomic step, and nothing else does."""

from __future__ import annotations

import pytest

from laketier.spi import Conflict, Feature, Watermark, WriteMode
from laketier.tiering import RoundOutcome
from laketier_conformance.lake import Table, ids_of, token

pytestmark = pytest.mark.needs(Feature.OVERWRITE)
OVERWRITE = WriteMode.OVERWRITE


def test_all_rows_are_replaced(table: Table) -> None:
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    result = table.round(token(1), [ids_of(1, 0), ids_of(1, 1)], OVERWRITE)
    assert (result.outcome, result.rows) == (RoundOutcome.PUBLISHED, 10)
    assert table.ids == ids_of(1, 0) + ids_of(1, 1)


def test_a_replay_does_not_overwrite_again(table: Table) -> None:
    table.round(token(0), [ids_of(0)], OVERWRITE)
    table.append(0, ids_of(1), pipeline="other")
    assert table.round(token(0), [ids_of(0)], OVERWRITE).outcome is RoundOutcome.ALREADY_THERE
    assert table.ids == ids_of(0) + ids_of(1)


def test_watermarks_of_others_stay(table: Table) -> None:
    table.append(0, pipeline="other")
    table.append(1, pipeline="other")
    table.round(token(0), [ids_of(7)], OVERWRITE)
    assert table.append(1, pipeline="other").outcome is RoundOutcome.ALREADY_THERE
    assert table.append(2, pipeline="other").outcome is RoundOutcome.PUBLISHED
    assert table.ids == sorted(ids_of(7) + ids_of(2))


def test_a_batch_overwrite_keeps_all_watermarks(table: Table) -> None:
    table.append(0)
    table.round(None, [ids_of(5)], OVERWRITE)
    assert table.append(0).outcome is RoundOutcome.ALREADY_THERE
    assert table.append(1).outcome is RoundOutcome.PUBLISHED
    assert table.ids == sorted(ids_of(5) + ids_of(1))


def test_nothing_empties_the_table(table: Table) -> None:
    table.append(0)
    table.round(token(1), [], OVERWRITE)
    assert table.ids == []
    assert table.append(2).outcome is RoundOutcome.PUBLISHED


def test_rows_that_came_meanwhile_are_not_lost_unseen(table: Table) -> None:
    """An overwrite replaces what its `open` saw: a commit in between makes it lose the attempt."""
    table.append(0)
    committer = table.committer(mode=OVERWRITE)
    stale = committer.open()
    table.append(0, ids_of(3), pipeline="other")
    with pytest.raises(Conflict):
        committer.publish(stale, [table.staged(ids_of(1))], Watermark(token(1), "c"))
    committer.close()
    assert table.ids == ids_of(0) + ids_of(3)


def test_an_append_planned_before_an_overwrite(table: Table) -> None:
    """The appended epoch stays, or loses the attempt: it never vanishes behind a success."""
    table.append(0)
    committer = table.committer()
    stale = committer.open()
    table.round(token(1), [ids_of(1)], OVERWRITE)
    try:
        committer.publish(stale, [table.staged(ids_of(2))], Watermark(token(0, pipeline="late"), "c"))
        expected = ids_of(1) + ids_of(2)
    except Conflict:
        expected = ids_of(1)
    committer.close()
    assert table.ids == expected
    mark = table.watermark()
    assert mark is not None
    assert mark.token.epoch == 1
