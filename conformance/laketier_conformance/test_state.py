"""`LakeStorage.state`: what a round that begins, or a reader, knows of a table; and handles, which may be stale."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Decision,
    Feature,
    LaketierError,
    ScanRequest,
    TableState,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound, write_task
from laketier_conformance.lake import Lake, Table, batch, ids_of, read_plan, token


def _state(table: Table) -> TableState:
    return table.lake.storage.state(table.info)


def _of(state: TableState) -> tuple[object, ...]:
    mark = state.watermark("p")
    return state.table_uuid, state.schema_fingerprint, state.spec_id, state.snapshot_id, mark


def test_a_state_is_what_a_committer_sees(table: Table) -> None:
    for epoch in range(2):
        committer = table.committer()
        state, opened = _state(table), committer.open()
        assert _of(state) == _of(opened)
        assert sorted(state.pipelines() or ()) == sorted(opened.pipelines() or ())
        info = table.info
        assert (state.table_uuid, state.spec_id) == (info.table_uuid, info.spec_id)
        assert (state.schema_fingerprint, state.snapshot_id) == (info.schema_fingerprint, info.snapshot_id)
        committer.close()
        table.append(epoch)
    mark = _state(table).watermark("p")
    assert mark is not None
    assert mark.token == token(1)


def test_to_look_at_a_state_changes_nothing(table: Table) -> None:
    table.append(0)
    before, files = table.info, table.lake.files()
    state = _state(table)
    assert state.watermark("p") is not None
    assert state.watermark("nobody") is None
    state.pipelines()
    assert table.info == before
    assert table.lake.files() == files


def test_a_state_stays_what_it_was(table: Table) -> None:
    table.append(0)
    state = _state(table)
    before = _of(state)
    table.append(1)
    table.append(0, ids_of(7), pipeline="q")
    assert _of(state) == before
    assert _of(_state(table)) != before


def test_a_table_has_no_handle_in_another_process(table: Table) -> None:
    """What has travelled loads the table itself."""
    table.append(0)
    info = table.info
    travelled = pickle.loads(pickle.dumps(info))  # noqa: S301 - as engines do
    assert travelled.handle is None
    assert travelled == info
    storage = table.lake.storage
    assert _of(storage.state(travelled)) == _of(storage.state(info))
    table.append(1)
    assert storage.state(travelled).snapshot_id == table.info.snapshot_id, "nothing else is known of its age"
    factory = pickle.loads(pickle.dumps(storage.tiering_factory(info)))  # noqa: S301 - as engines do
    context = WriterInitContext(attempt=new_attempt_id(), split_index=0)
    message = write_task(factory, [batch(ids_of(2))], context)
    assert TieringRound(factory, token=token(2)).commit_messages([message]).outcome is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("same", [True, False], ids=["the-same-epoch", "another-pipeline"])
def test_another_driver_commits_after_the_round_began(table: Table, same: bool) -> None:
    """The round decided by what it loaded. What it publishes by is a look of its own."""
    table.append(0)
    storage, info = table.lake.storage, table.info
    factory, state = storage.tiering_factory(info), storage.state(info)
    tiering = TieringRound(factory, token=token(1))
    assert tiering.begin(state) is Decision.PROCEED
    message = table.stage(ids_of(1), factory=factory)
    rival = {} if same else {"pipeline": "other"}
    table.append(1 if same else 0, ids_of(5), **rival)
    done = tiering.commit_messages([message])
    assert done.outcome is (RoundOutcome.ALREADY_THERE if same else RoundOutcome.PUBLISHED)
    assert table.ids == sorted(ids_of(0) + ids_of(5) + ([] if same else ids_of(1)))


def test_an_epoch_that_came_before_the_round_began_is_done(table: Table) -> None:
    table.append(0)
    storage, info = table.lake.storage, table.info
    tiering = TieringRound(storage.tiering_factory(info), token=token(0))
    assert tiering.begin(storage.state(info)) is Decision.DONE
    assert tiering.confirm_done().outcome is RoundOutcome.ALREADY_THERE
    assert table.ids == ids_of(0)


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_table_made_anew_after_the_round_began(table: Table, epoch: int) -> None:
    """No handle of the table that was dropped leads into the one that has its name."""
    if epoch:
        table.append(0)
    storage, info = table.lake.storage, table.info
    factory, state = storage.tiering_factory(info), storage.state(info)
    tiering = TieringRound(factory, token=token(epoch))
    assert tiering.begin(state) is Decision.PROCEED
    message = table.stage(ids_of(epoch), factory=factory)
    table.lake.storage.catalog().drop_table(table.path)
    table.lake.create()
    with pytest.raises(LaketierError):
        tiering.commit_messages([message])
    assert table.ids == []
    assert table.watermark() is None


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_column_added_after_the_round_began(table: Table) -> None:
    table.append(0)
    storage, info = table.lake.storage, table.info
    factory, state = storage.tiering_factory(info), storage.state(info)
    tiering = TieringRound(factory, token=token(1))
    tiering.begin(state)
    message = table.stage(ids_of(1), factory=factory)
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    with pytest.raises(LaketierError, match="schema"):
        tiering.commit_messages([message])
    assert table.ids == ids_of(0)


def test_a_plan_of_a_state(table: Table) -> None:
    """Of that state, or of what is current: the plan says which."""
    table.append(0)
    storage, info = table.lake.storage, table.info
    source, state = storage.source(info), storage.state(info)
    table.append(1)
    current = table.info.snapshot_id
    plan = source.plan(ScanRequest(state=state))
    assert plan.snapshot_id in (state.snapshot_id, current)
    expected = ids_of(0) if plan.snapshot_id == state.snapshot_id else ids_of(0) + ids_of(1)
    assert sorted(read_plan(source, plan)["id"].to_pylist()) == expected
    assert source.plan(ScanRequest()).snapshot_id == current, "without a state, what is current"


@pytest.mark.needs(Feature.TIME_TRAVEL)
def test_a_snapshot_that_is_named_counts_for_more_than_a_state(table: Table) -> None:
    table.append(0)
    storage, info = table.lake.storage, table.info
    source, state = storage.source(info), storage.state(info)
    table.append(1)
    named = table.info.snapshot_id
    plan = source.plan(ScanRequest(snapshot_id=named, state=state))
    assert plan.snapshot_id == named
    assert sorted(read_plan(source, plan)["id"].to_pylist()) == ids_of(0) + ids_of(1)


@pytest.mark.needs(Feature.UPSERT)
def test_rows_merged_with_a_state_that_is_over(lake: Lake) -> None:
    table = lake.create(name="db.keyed", primary_key=("id",))
    table.append(0)
    storage, info = table.lake.storage, table.info
    tiering = TieringRound(storage.tiering_factory(info), token=token(1), mode=WriteMode.UPSERT)
    tiering.begin(storage.state(info))
    assert tiering.base_snapshot == info.snapshot_id
    message = table.stage(ids_of(1), factory=storage.tiering_factory(info), mode=WriteMode.UPSERT)
    table.append(0, ids_of(5), pipeline="other")
    with pytest.raises(LaketierError, match="changed while"):
        tiering.commit_messages([message])
    assert table.ids == sorted(ids_of(0) + ids_of(5))
