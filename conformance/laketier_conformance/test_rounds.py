"""Rounds that go well, and their replays."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest

from laketier.spi import (
    CommitterInitContext,
    Conflict,
    Decision,
    Feature,
    LaketierError,
    Refused,
    Watermark,
    new_attempt_id,
    unpack,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import QUICK, SCHEMA, Lake, Table, batch, ids_of, read_plan, token


def test_every_row_is_there_with_its_values(table: Table) -> None:
    """Three tasks, several batches each: no batch is lost, and no value changes."""
    tasks = [[list(range(t * 1000 + b * 100, t * 1000 + b * 100 + 7)) for b in range(4)] for t in range(3)]
    results = [table.stage_arrow([batch(ids) for ids in task]) for task in tasks]
    table.commit(results, token(0))
    ids = sorted(i for task in tasks for part in task for i in part)
    expect(table.ids, ids, "rows of three tasks with several batches each")
    expect(
        table.read().sort_by("id"),
        pa.Table.from_batches([batch(ids)]),
        "values of three tasks with several batches each",
    )


def test_rounds_follow_each_other(table: Table) -> None:
    for epoch in range(4):
        expect(
            table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1)).outcome,
            RoundOutcome.PUBLISHED,
            f"the outcome of epoch {epoch}",
        )
        expect(
            table.ids,
            sorted(i for e in range(epoch + 1) for split in (0, 1) for i in ids_of(e, split)),
            f"rows after epoch {epoch}",
        )


def test_tasks_without_rows_beside_others(table: Table) -> None:
    """A partition of the input may be empty: the first, the last, or one in between."""
    tasks = [[], ids_of(0, 1), [], [], ids_of(0, 2, 1), []]
    result = table.append(0, *tasks)
    expect((result.outcome, result.rows), (RoundOutcome.PUBLISHED, 6), "outcome and rows of tasks, some without rows")
    expect(table.ids, ids_of(0, 1) + ids_of(0, 2, 1), "rows of tasks beside others that have none")


def test_results_come_in_any_order(table: Table) -> None:
    """As tasks end, and not as they began. Those of one size, and of one moment, are results of different tasks."""
    factory, first = table.factory, new_attempt_id()
    earlier = f"{int(first[:12], 16) - 1:012x}{first[12:]}"
    attempts = [first, f"{first[:-1]}{int(first[-1], 16) ^ 1:x}", earlier, new_attempt_id()]
    messages = [table.stage([10 + n, 20 + n], n, factory, attempt=attempt) for n, attempt in enumerate(attempts)]
    results = [unpack(factory.write_result_serializer, messages[number]) for number in (1, 3, 0, 2)]
    with goes_well("results of four tasks of one size are published in another order than that of their attempts"):
        table.commit(results, token(0))
    expect(table.ids, sorted([*range(10, 14), *range(20, 24)]), "rows of four tasks of one size, in another order")


def test_tasks_and_epochs_of_the_same_rows(table: Table) -> None:
    """They are no replay, and no speculative twins: the source has these rows so often."""
    for epoch in range(2):
        table.append(epoch, ids_of(0), ids_of(0))
    expect(table.ids, sorted(ids_of(0) * 4), "rows of two epochs of two tasks each, all of which have the same rows")


@pytest.mark.needs(Feature.HISTORY)
def test_many_tasks_are_one_commit(table: Table) -> None:
    """However many files they staged: a reader sees all of them, or none. Of a thousand tasks most have no rows."""
    before = table.append(0, [1]).snapshot_id
    factory = table.factory
    nothing = table.stage([], 110, factory)
    messages = [nothing] * 1000 + [table.stage([1000 + number], number, factory) for number in range(110)]
    results = [unpack(factory.write_result_serializer, message) for message in messages]
    gone, committer = table.staged([1], 110), table.committer()
    committer.discard([gone])
    with refused(Refused, "a round of 111 tasks is published, and what the last of them staged is gone"):
        committer.publish(committer.open(), [*results, gone], None)
    committer.close()
    expect(table.ids, [1], "rows after a round of 111 tasks was refused, as what the last of them staged is gone")
    result = TieringRound(factory, token=token(1), policy=QUICK).commit_messages(messages)
    expect((result.outcome, result.rows), (RoundOutcome.PUBLISHED, 110), "outcome and rows of 110 tasks")
    newest = [line.snapshot_id for line in table.history.snapshots(2)]
    expect(newest, [result.snapshot_id, before], "a commit of 110 tasks and the one before it, in the history")
    ids = list(range(1000, 1110))
    expect(table.ids, [1, *ids], "rows of 110 tasks")
    if table.lake.declares(Feature.INCREMENTAL_READ):
        end = table.changes.versions().latest
        changed = read_plan(table.source, table.changes.plan(end - 1, end))["id"].to_pylist()
        expect(sorted(changed), ids, "rows that a commit of 110 tasks appended, as its changes tell them")
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        listed = table.lake.storage.maintenance(table.info).orphans(1 << 53)
        expect([each.path for each in listed if each.kind == "data"], [], "files of 110 tasks that are called orphans")


def test_a_replay_writes_nothing(table: Table) -> None:
    first = table.append(0)
    again = table.append(0)
    expect(again.outcome, RoundOutcome.ALREADY_THERE, "the outcome of an epoch that is run again")
    expect(
        again.snapshot_id,
        first.snapshot_id,
        "the snapshot of an epoch that is run again (a watermark that is read names the snapshot that carried it: "
        "store `watermark.carried_by(snapshot_id)`)",
    )
    expect(table.ids, ids_of(0), "rows after an epoch was run again")


def test_a_replay_is_seen_before_anything_is_written(table: Table) -> None:
    table.append(0)
    tiering = TieringRound(table.factory, token=token(0))
    expect(tiering.begin(), Decision.DONE, "the decision about an epoch that is there")
    tiering.close()


def test_a_replay_deletes_what_it_staged(lake: Lake, table: Table) -> None:
    table.append(0)
    before = lake.files()
    table.append(0)
    expect(lake.files(), before, "files after an epoch was run again")


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_an_old_result_is_handed_over_again(table: Table, known: bool) -> None:
    """By whoever kept it, with another epoch: its files are in the table. It is refused, or they stay there once."""
    old = table.staged(ids_of(0))
    table.commit([old], token(0))
    table.append(1)
    with suppress(LaketierError):
        table.commit([old], token(2) if known else None)
    expect(table.ids, ids_of(0) + ids_of(1), "rows after a result was handed over again that is in the table")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after an old result was handed over again"
    epoch = mark.token.epoch + 1
    expect(table.append(epoch).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch after an old result")
    expect(table.ids, ids_of(0) + ids_of(1) + ids_of(epoch), "rows of the epoch after an old result")


def test_the_counts_are_those_of_the_files(table: Table) -> None:
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    committer = table.committer()
    results = [table.staged(ids_of(1, split, rows)) for split, rows in ((0, 3), (1, 4))]
    commit = committer.publish(committer.open(), results, None)
    committer.close()
    expect(commit.rows, 7, "rows that the committer counts: those of its own commit")
    assert commit.files == sum(len(result.files) for result in results) >= 2, (
        f"files that the committer counts, {commit.files}, are those of its results, at least two"
    )
    assert commit.bytes == sum(result.bytes for result in results) > 0, (
        f"bytes that the committer counts, {commit.bytes}, are those of its results"
    )
    expect(commit.snapshot_id, table.info.snapshot_id, "the snapshot that the committer tells")
    for name in ("snapshot_id", "rows", "files", "bytes", "folded"):
        count = getattr(commit, name)
        assert type(count) is int, f"{name} of what the committer tells is a whole number: found {count!r}"
        assert count >= 0, f"{name} of what the committer tells is no less than 0: found {count}"
    expect(len(table.ids), 17, "the number of rows after two commits")


def test_the_result_of_a_round_counts(table: Table) -> None:
    result = table.append(0, ids_of(0, 0, 3), ids_of(0, 1, 4))
    expect((result.rows, result.snapshot_id), (7, table.info.snapshot_id), "rows and snapshot that a round tells")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after its round"
    expect(mark.rows, 7, "the rows in the watermark")


def test_each_commit_has_a_snapshot_of_its_own(table: Table) -> None:
    ids = [table.append(epoch).snapshot_id for epoch in range(3)]
    assert None not in ids, "each commit has a snapshot"
    expect(len(set(ids)), 3, "the number of different snapshots of three commits")
    expect(table.info.snapshot_id, ids[-1], "the newest snapshot")


def test_an_empty_epoch_moves_the_watermark(table: Table) -> None:
    table.append(0)
    result = table.append(1, [])
    expect(
        (result.outcome, result.rows, result.files),
        (RoundOutcome.PUBLISHED, 0, 0),
        "outcome, rows and files of an epoch without rows",
    )
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after an epoch without rows"
    expect(mark.token.epoch, 1, "the epoch of the watermark after an epoch without rows")
    expect(
        table.append(1, []).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch without rows that is run again",
    )
    expect(table.append(2).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch after one without rows")
    expect(table.ids, ids_of(0) + ids_of(2), "rows of epochs around one without rows")


def test_an_empty_first_epoch(table: Table) -> None:
    expect(table.append(0, []).outcome, RoundOutcome.PUBLISHED, "the outcome of a first epoch without rows")
    expect(
        table.append(0, []).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of a first epoch without rows that is run again",
    )
    expect(table.ids, [], "rows after a first epoch without rows")
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch after a first one without rows")


def test_an_epoch_without_any_task(table: Table) -> None:
    expect(table.commit([], token(0)).outcome, RoundOutcome.PUBLISHED, "the outcome of an epoch without any task")
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch after one without any task")
    expect(table.ids, ids_of(1), "rows of the epoch after one without any task")


def test_two_pipelines_take_turns(table: Table) -> None:
    for epoch in range(3):
        table.append(epoch, ids_of(epoch, 0), pipeline="a")
        table.append(epoch, ids_of(epoch, 1), pipeline="b")
    expect(
        table.append(2, ids_of(2, 0), pipeline="a").outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch of one of two pipelines that is run again",
    )
    expect(
        table.ids,
        sorted(i for epoch in range(3) for split in (0, 1) for i in ids_of(epoch, split)),
        "rows of two pipelines that take turns",
    )


def test_a_pipeline_has_a_watermark_in_each_table(lake: Lake) -> None:
    """One pipeline feeds several tables. Each says for itself which epochs it has."""
    tables = [lake.create(name=name) for name in ("db.one", "db.two", "other.one")]
    for number, each in enumerate(tables):
        for epoch in range(number + 1):
            outcome = each.append(epoch).outcome
            expect(outcome, RoundOutcome.PUBLISHED, f"epoch {epoch} of one pipeline, in table {number} of three")
    for number, each in enumerate(tables):
        expect(each.append(number).outcome, RoundOutcome.ALREADY_THERE, f"a replay of epoch {number} in its table")
        expect(each.ids, [i for e in range(number + 1) for i in ids_of(e)], "rows of one of three tables of a pipeline")


def test_a_batch_without_a_pipeline(table: Table) -> None:
    table.append(0)
    table.round(None, [ids_of(1)])
    table.round(None, [ids_of(1)])
    expect(table.ids, sorted(ids_of(0) + 2 * ids_of(1)), "rows after two batches without a pipeline")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after batches without one"
    expect(mark.token.epoch, 0, "the epoch of the watermark: batches without a pipeline leave it alone")
    expect(
        table.append(1, ids_of(2)).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next epoch after batches without a pipeline",
    )


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_commit_is_found_by_its_id(table: Table, known: bool) -> None:
    commit_id, other = new_attempt_id(), new_attempt_id()
    result = table.commit([table.staged(ids_of(0))], token(0) if known else None, commit_id=commit_id)
    expect(result.outcome, RoundOutcome.PUBLISHED, "the outcome of a commit that names its id")
    for epoch in range(3):
        table.append(epoch, [10**6 + epoch], pipeline="others")
    state = table.committer().open()
    assert state.landed(commit_id), "a commit that landed is found by its id, behind three others"
    assert not state.landed(other), "a commit that never was is not found by its id"


def test_a_batch_without_rows_is_a_commit(table: Table) -> None:
    """Without files and without a watermark it is one all the same: of two, one wins, and it is found by its id."""
    table.append(0)
    first, second = table.committer(commit_id="the first"), table.committer(commit_id="the second")
    state_1, state_2 = first.open(), second.open()
    first.publish(state_1, [], None)
    with refused(Conflict, "a batch without rows is published against a state that another one made stale"):
        second.publish(state_2, [], None)
    seen = second.open()
    found = [name for name in ("the first", "the second") if seen.landed(name)]
    expect(found, ["the first"], "the batches without rows that landed")
    first.close()
    second.close()
    expect(table.ids, ids_of(0), "rows after a batch without any")


def test_an_unpublished_commit_is_not_found(table: Table) -> None:
    commit_id = new_attempt_id()
    first = table.factory.create_committer(CommitterInitContext(commit_id=commit_id))
    stale = first.open()
    assert not stale.landed(commit_id), "a commit is not found by its id before it is published"
    table.append(0)
    staged = table.staged(ids_of(0))
    with refused(Conflict, "a commit is published against a state that another one made stale"):
        first.publish(stale, [staged], Watermark(token(0), commit_id))
    assert not first.open().landed(commit_id), "a commit that lost is not found by its id"
    first.close()


def test_another_schema_with_many_columns(lake: Lake) -> None:
    schema = pa.schema([SCHEMA.field("id"), *((f"c{i}", pa.string()) for i in range(60))])
    wide = lake.create(schema, "db.wide")
    rows = pa.record_batch([pa.array([1, 2]), *(pa.array([f"{i}", None]) for i in range(60))], schema=schema)
    wide.publish_arrow([rows], token(0))
    expect(wide.read().sort_by("id"), pa.Table.from_batches([rows]), "rows of 60 columns")
