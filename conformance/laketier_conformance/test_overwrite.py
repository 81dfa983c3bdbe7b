"""Overwriting: all rows change in one atomic step, and nothing else does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from laketier.spi import (
    COLLECTOR,
    AddColumn,
    Conflict,
    Feature,
    LaketierError,
    Watermark,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import QUICK, Table, batch, ids_of, token

pytestmark = pytest.mark.needs(Feature.OVERWRITE)
OVERWRITE = WriteMode.OVERWRITE


def test_all_rows_are_replaced(table: Table) -> None:
    """By each epoch of a stream, whose factory was made when it began, and whatever has come since."""
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    factory = table.factory
    table.append(0, ids_of(7), pipeline="other")
    for epoch in (1, 2):
        tiering = TieringRound(factory, token=token(epoch), mode=OVERWRITE, policy=QUICK)
        tiering.begin()
        tasks = [table.stage(ids_of(epoch, task), task, factory, OVERWRITE) for task in (0, 1)]
        result = tiering.commit_messages(tasks)
        expect((result.outcome, result.rows), (RoundOutcome.PUBLISHED, 10), f"outcome and rows of overwrite {epoch}")
        expect(table.ids, ids_of(epoch, 0) + ids_of(epoch, 1), f"rows after overwrite {epoch} of a stream")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_the_table_stays_the_same(table: Table) -> None:
    """Its identity, its columns and what it was made with: the rows alone are others."""
    table.append(0)
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
    before = table.info
    rows = batch(ids_of(1)).append_column("more", pa.array(ids_of(1), pa.int64()))
    tiering = TieringRound(table.factory, token=token(1), mode=OVERWRITE, policy=QUICK)
    tiering.begin()
    tiering.commit([table.stage_arrow([rows], mode=OVERWRITE)])
    after = table.info
    expect(after.table_uuid, before.table_uuid, "the uuid of a table after an overwrite")
    expect(after.schema.names, before.schema.names, "the columns of a table after an overwrite")
    expect(after.descriptor, before.descriptor, "the description of a table after an overwrite")
    expect(
        table.read().sort_by("id"), pa.Table.from_batches([rows]), "rows of an overwrite with a column that was added"
    )


def test_a_replay_does_not_overwrite_again(table: Table) -> None:
    table.round(token(0), [ids_of(0)], OVERWRITE)
    table.append(0, ids_of(1), pipeline="other")
    expect(
        table.round(token(0), [ids_of(0)], OVERWRITE).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an overwrite that is run again",
    )
    expect(
        table.ids, ids_of(0) + ids_of(1), "rows after an overwrite was run again, beside an append of another pipeline"
    )


def test_watermarks_of_others_stay(table: Table) -> None:
    table.append(0, pipeline="other")
    table.append(1, pipeline="other")
    committer = table.committer()
    committer.publish(committer.open(), [], Watermark(replace(token(0, COLLECTOR), content="1"), "horizon"))
    committer.close()
    horizon = table.watermark(COLLECTOR)
    table.round(token(0), [ids_of(7)], OVERWRITE)
    expect(table.watermark(COLLECTOR), horizon, "the horizon of orphan collection after an overwrite")
    with goes_well(
        "another pipeline's epoch is run again after an overwrite, which keeps the watermarks of all others"
    ):
        outcome = table.append(1, pipeline="other").outcome
    again = "the outcome of another pipeline's epoch that is run again after an overwrite"
    expect(outcome, RoundOutcome.ALREADY_THERE, again)
    expect(
        table.append(2, pipeline="other").outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of another pipeline's next epoch after an overwrite",
    )
    expect(table.ids, sorted(ids_of(7) + ids_of(2)), "rows of an overwrite and of another pipeline's epoch after it")


def test_a_batch_overwrite_keeps_all_watermarks(table: Table) -> None:
    table.append(0)
    commit = new_attempt_id()
    committer = table.committer(OVERWRITE, commit)
    state, results = committer.open(), [table.stage_arrow([batch(ids_of(5))], mode=OVERWRITE)]
    committer.publish(state, results, None)
    committer.close()
    expect(
        table.lake.storage.state(table.info).landed(commit),
        True,
        "whether the overwrite of a batch landed, by the id of its commit",
    )
    expect(
        table.append(0).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that is run again after a batch overwrote the table",
    )
    expect(
        table.append(1).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next epoch after a batch overwrote the table",
    )
    expect(table.ids, sorted(ids_of(5) + ids_of(1)), "rows of the next epoch after a batch overwrote the table")


def test_nothing_empties_the_table(table: Table) -> None:
    table.append(0)
    table.round(token(1), [], OVERWRITE)
    expect(table.ids, [], "rows after an overwrite without rows")
    expect(
        table.append(2).outcome, RoundOutcome.PUBLISHED, "the outcome of the next epoch after an overwrite without rows"
    )


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_rows_that_came_meanwhile_are_not_lost_unseen(table: Table, known: bool) -> None:
    """An overwrite replaces what its `open` saw: a commit in between makes it lose the attempt."""
    table.append(0)
    committer = table.committer(mode=OVERWRITE)
    stale = committer.open()
    table.append(0, ids_of(3), pipeline="other")
    with refused(Conflict, "an overwrite is published against a state that another commit made stale"):
        committer.publish(stale, [table.staged(ids_of(1))], Watermark(token(1), "c") if known else None)
    committer.close()
    expect(table.ids, ids_of(0) + ids_of(3), "rows after a stale overwrite was refused")


def test_an_append_planned_before_an_overwrite(table: Table) -> None:
    """The appended epoch stays, or loses the attempt: it never vanishes behind a success. What a round of others has
    staged is no row that an overwrite takes away: it is published later, and is there then."""
    table.append(0)
    committer = table.committer()
    stale, early = committer.open(), table.staged(ids_of(3))
    table.round(token(1), [ids_of(1)], OVERWRITE)
    try:
        committer.publish(stale, [table.staged(ids_of(2))], Watermark(token(0, pipeline="late"), "c"))
        expected = ids_of(1) + ids_of(2)
    except Conflict:
        expected = ids_of(1)
    committer.close()
    expect(table.ids, expected, "rows after an append that was planned before an overwrite")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after its overwrite"
    expect(mark.token.epoch, 1, "the epoch of the watermark after an overwrite")
    with goes_well("a round is published that had staged its rows before another one's overwrite"):
        table.commit([early], token(0, pipeline="early"))
    expect(table.ids, expected + ids_of(3), "rows of a round that had staged them before another one's overwrite")


def test_an_overwrite_publishes_no_old_result(table: Table) -> None:
    """What it would take away says nothing of what its results are."""
    old = table.staged(ids_of(0))
    table.commit([old], token(0))
    table.round(token(1), [ids_of(1)], OVERWRITE)
    with suppress(LaketierError):
        table.commit([old], token(2), mode=OVERWRITE)
    found = [each for each in table.ids if each in ids_of(0)]
    expect(found, [], "rows of a result that an overwrite took away, and that a later overwrite was handed again")
