"""Rounds that go well, and their replays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.spi import CommitterInitContext, Conflict, Decision, Watermark, new_attempt_id
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, token


def test_every_row_is_there_with_its_values(table: Table) -> None:
    """Three tasks, several batches each: no batch is lost, and no value changes."""
    tasks = [[list(range(t * 1000 + b * 100, t * 1000 + b * 100 + 7)) for b in range(4)] for t in range(3)]
    results = [table.stage_arrow([batch(ids) for ids in task]) for task in tasks]
    table.commit(results, token(0))
    ids = sorted(i for task in tasks for part in task for i in part)
    assert table.ids == ids
    assert table.read().sort_by("id").equals(pa.Table.from_batches([batch(ids)]))


def test_rounds_follow_each_other(table: Table) -> None:
    for epoch in range(4):
        assert table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1)).outcome is RoundOutcome.PUBLISHED
        assert table.ids == sorted(i for e in range(epoch + 1) for split in (0, 1) for i in ids_of(e, split))


def test_a_replay_writes_nothing(table: Table) -> None:
    first = table.append(0)
    again = table.append(0)
    assert again.outcome is RoundOutcome.ALREADY_THERE
    assert again.snapshot_id == first.snapshot_id
    assert table.ids == ids_of(0)


def test_a_replay_is_seen_before_anything_is_written(table: Table) -> None:
    table.append(0)
    tiering = TieringRound(table.factory, token=token(0))
    assert tiering.begin() is Decision.DONE
    tiering.close()


def test_a_replay_deletes_what_it_staged(lake: Lake, table: Table) -> None:
    table.append(0)
    before = lake.files()
    table.append(0)
    assert lake.files() == before


def test_the_counts_are_those_of_the_files(table: Table) -> None:
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    committer = table.committer()
    results = [table.staged(ids_of(1, split, rows)) for split, rows in ((0, 3), (1, 4))]
    commit = committer.publish(committer.open(), results, None)
    committer.close()
    assert commit.rows == 7
    assert commit.files == sum(len(result.files) for result in results) >= 2
    assert commit.bytes == sum(result.bytes for result in results) > 0
    assert commit.snapshot_id == table.info.snapshot_id
    assert len(table.ids) == 17


def test_the_result_of_a_round_counts(table: Table) -> None:
    result = table.append(0, ids_of(0, 0, 3), ids_of(0, 1, 4))
    assert (result.rows, result.snapshot_id) == (7, table.info.snapshot_id)
    mark = table.watermark()
    assert mark is not None
    assert mark.rows == 7


def test_each_commit_has_a_snapshot_of_its_own(table: Table) -> None:
    ids = [table.append(epoch).snapshot_id for epoch in range(3)]
    assert None not in ids
    assert len(set(ids)) == 3
    assert table.info.snapshot_id == ids[-1]


def test_an_empty_epoch_moves_the_watermark(table: Table) -> None:
    table.append(0)
    result = table.append(1, [])
    assert (result.outcome, result.rows, result.files) == (RoundOutcome.PUBLISHED, 0, 0)
    mark = table.watermark()
    assert mark is not None
    assert mark.token.epoch == 1
    assert table.append(1, []).outcome is RoundOutcome.ALREADY_THERE
    assert table.append(2).outcome is RoundOutcome.PUBLISHED
    assert table.ids == ids_of(0) + ids_of(2)


def test_an_empty_first_epoch(table: Table) -> None:
    assert table.append(0, []).outcome is RoundOutcome.PUBLISHED
    assert table.append(0, []).outcome is RoundOutcome.ALREADY_THERE
    assert table.ids == []
    assert table.append(1).outcome is RoundOutcome.PUBLISHED


def test_an_epoch_without_any_task(table: Table) -> None:
    assert table.commit([], token(0)).outcome is RoundOutcome.PUBLISHED
    assert table.append(1).outcome is RoundOutcome.PUBLISHED
    assert table.ids == ids_of(1)


def test_two_pipelines_take_turns(table: Table) -> None:
    for epoch in range(3):
        table.append(epoch, ids_of(epoch, 0), pipeline="a")
        table.append(epoch, ids_of(epoch, 1), pipeline="b")
    assert table.append(2, ids_of(2, 0), pipeline="a").outcome is RoundOutcome.ALREADY_THERE
    assert table.ids == sorted(i for epoch in range(3) for split in (0, 1) for i in ids_of(epoch, split))


def test_a_batch_without_a_pipeline(table: Table) -> None:
    table.append(0)
    table.round(None, [ids_of(1)])
    table.round(None, [ids_of(1)])
    assert table.ids == sorted(ids_of(0) + 2 * ids_of(1))
    mark = table.watermark()
    assert mark is not None
    assert mark.token.epoch == 0, "it leaves watermarks alone"
    assert table.append(1, ids_of(2)).outcome is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_commit_is_found_by_its_id(table: Table, known: bool) -> None:
    commit_id, other = new_attempt_id(), new_attempt_id()
    result = table.commit([table.staged(ids_of(0))], token(0) if known else None, commit_id=commit_id)
    assert result.outcome is RoundOutcome.PUBLISHED
    for epoch in range(3):
        table.append(epoch, [10**6 + epoch], pipeline="others")
    state = table.committer().open()
    assert state.landed(commit_id)
    assert not state.landed(other)


def test_an_unpublished_commit_is_not_found(table: Table) -> None:
    commit_id = new_attempt_id()
    first = table.factory.create_committer(CommitterInitContext(commit_id=commit_id))
    stale = first.open()
    assert not stale.landed(commit_id)
    table.append(0)
    staged = table.staged(ids_of(0))
    with pytest.raises(Conflict):
        first.publish(stale, [staged], Watermark(token(0), commit_id))
    assert not first.open().landed(commit_id)
    first.close()


def test_another_schema_with_many_columns(lake: Lake) -> None:
    schema = pa.schema([SCHEMA.field("id"), *((f"c{i}", pa.string()) for i in range(60))])
    wide = lake.create(schema, "db.wide")
    rows = pa.record_batch([pa.array([1, 2]), *(pa.array([f"{i}", None]) for i in range(60))], schema=schema)
    wide.publish_arrow([rows], token(0))
    assert wide.read().sort_by("id").equals(pa.Table.from_batches([rows]))
