"""`LakeStorage.state`: what a round that begins, or a reader, knows of a table; and handles, which may be stale."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Conflict,
    Decision,
    Feature,
    LaketierError,
    ScanRequest,
    TableState,
    Watermark,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound, write_task
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, Table, batch, ids_of, read_pinned, read_plan, token


def _state(table: Table) -> TableState:
    return table.lake.storage.state(table.info)


def _of(state: TableState) -> tuple[object, ...]:
    mark = state.watermark("p")
    return state.table_uuid, state.schema_fingerprint, state.spec_id, state.snapshot_id, mark


def test_a_state_is_what_a_committer_sees(table: Table) -> None:
    for epoch in range(2):
        committer = table.committer()
        state, opened = _state(table), committer.open()
        expect(_of(state), _of(opened), "the state that a storage tells, beside the one that a committer opens")
        expect(
            sorted(state.pipelines() or ()),
            sorted(opened.pipelines() or ()),
            "the pipelines that a storage tells, beside those that a committer opens",
        )
        info = table.info
        expect(
            (state.table_uuid, state.spec_id),
            (info.table_uuid, info.spec_id),
            "uuid and partitioning of a state, beside those of the table",
        )
        expect(
            (state.schema_fingerprint, state.snapshot_id),
            (info.schema_fingerprint, info.snapshot_id),
            "fingerprint and snapshot of a state, beside those of the table",
        )
        committer.close()
        table.append(epoch)
    mark = _state(table).watermark("p")
    assert mark is not None, "a pipeline has a watermark in the state"
    expect(mark.token, token(1), "the token of the watermark in the state")


def test_a_committer_looks_afresh_each_time(table: Table) -> None:
    """After a conflict the same committer is asked again."""
    table.append(0)
    committer = table.committer()
    old = committer.open()
    table.append(1)
    state = committer.open()
    with refused(Conflict, "a commit is published against a stale state, and its committer has looked again"):
        committer.publish(old, [table.staged(ids_of(9))], None)
    state = committer.open()
    mark = state.watermark("p")
    assert mark is not None, "a pipeline has a watermark when a committer looks again"
    expect(mark.token.epoch, 1, "the epoch of the watermark that a committer sees when it looks again")
    committer.publish(state, [table.staged(ids_of(2))], Watermark(token(2), "c"))
    committer.close()
    expect(table.ids, ids_of(0) + ids_of(1) + ids_of(2), "rows after a committer looked again, and published")


def test_a_committer_is_closed_beside_another(table: Table) -> None:
    """A process has several, of two streams: one that is made and closed changes nothing for the others. Each publishes
    under its own id, and in its own mode."""
    table.append(0)
    ids = (new_attempt_id(), new_attempt_id())
    mode = WriteMode.OVERWRITE if table.lake.declares(Feature.OVERWRITE) else WriteMode.APPEND
    kept, closed = table.committer(commit_id=ids[0]), table.committer(mode, commit_id=ids[1])
    state = kept.open()
    closed.open()
    closed.close()
    kept.publish(state, [table.staged(ids_of(1))], None)
    kept.close()
    expect(table.ids, ids_of(0) + ids_of(1), "rows of a committer that appends, after another one of its process")
    found = [_state(table).landed(each) for each in ids]
    expect(found, [True, False], "whether the commits of two committers of a process landed, of which one published")


def test_to_look_at_a_state_changes_nothing(table: Table) -> None:
    table.append(0)
    before, files = table.info, table.lake.files()
    state = _state(table)
    assert state.watermark("p") is not None, "the pipeline that wrote has a watermark in the state"
    expect(state.watermark("nobody"), None, "the watermark of a pipeline that never wrote")
    state.pipelines()
    expect(table.info, before, "the table after its state was looked at")
    expect(table.lake.files(), files, "files after the state was looked at")


def test_a_state_stays_what_it_was(table: Table) -> None:
    table.append(0)
    state = _state(table)
    before = _of(state)
    table.append(1)
    table.append(0, ids_of(7), pipeline="q")
    expect(_of(state), before, "a state after two more commits: it stays as it was")
    assert _of(_state(table)) != before, "a state that is taken after two more commits is another one"


MARKS = ((9, 1_000), (10, 900), (2, 800), (11, 700))
"""Epochs that follow each other, one to which a pipeline went back, and moments of a clock that was set back."""


def test_the_watermark_is_the_one_that_was_published_last(table: Table) -> None:
    """Neither the greater one nor the later one: the core decides what may follow what."""
    for epoch, moment in MARKS:
        commit = new_attempt_id()
        committer = table.committer(commit_id=commit)
        committer.publish(committer.open(), [], Watermark(token(epoch), commit, committed_at=moment))
        committer.close()
        mark = _state(table).watermark("p")
        found = None if mark is None else (mark.token.epoch, mark.commit_id)
        expect(
            found, (epoch, commit), f"of the epochs {[e for e, _ in MARKS]}, {epoch} was published last: the watermark"
        )


def test_a_state_that_was_published_on_stays_what_it_was(table: Table) -> None:
    """Also in what it says of the pipeline that did so: a lost answer is looked up in a new one."""
    table.append(0)
    committer = table.committer()
    state = committer.open()
    before = _of(state)
    committer.publish(state, [table.staged(ids_of(1))], Watermark(token(1), "c"))
    expect(_of(state), before, "a state after a commit was published on it")
    with refused(Conflict, "a second commit is published on the same state"):
        committer.publish(state, [table.staged(ids_of(2))], Watermark(token(2), "d"))
    expect(_of(state), before, "a state after a commit on it was refused")
    committer.close()
    expect(table.ids, ids_of(0) + ids_of(1), "rows after two commits were published on one state")


def test_a_table_has_no_handle_in_another_process(table: Table) -> None:
    """What has travelled loads the table itself."""
    table.append(0)
    info = table.info
    travelled = pickle.loads(pickle.dumps(info))  # noqa: S301 - as engines do
    expect(travelled.handle, None, "the handle of a description that was pickled")
    expect(travelled, info, "a description that was pickled")
    storage = table.lake.storage
    expect(_of(storage.state(travelled)), _of(storage.state(info)), "the state of a description that was pickled")
    table.append(1)
    expect(
        storage.state(travelled).snapshot_id,
        table.info.snapshot_id,
        "the snapshot of the state of an old description that was pickled: nothing else is known of its age",
    )
    factory = pickle.loads(pickle.dumps(storage.tiering_factory(info)))  # noqa: S301 - as engines do
    context = WriterInitContext(attempt=new_attempt_id(), split_index=0)
    message = write_task(factory, [batch(ids_of(2))], context)
    expect(
        TieringRound(factory, token=token(2)).commit_messages([message]).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of a round of a factory that was pickled",
    )


@pytest.mark.parametrize("same", [True, False], ids=["the-same-epoch", "another-pipeline"])
def test_another_driver_commits_after_the_round_began(table: Table, same: bool) -> None:
    """The round decided by what it loaded. What it publishes by is a look of its own."""
    table.append(0)
    storage, info = table.lake.storage, table.info
    factory, state = storage.tiering_factory(info), storage.state(info)
    tiering = TieringRound(factory, token=token(1))
    expect(tiering.begin(state), Decision.PROCEED, "the decision about the next epoch")
    message = table.stage(ids_of(1), factory=factory)
    rival = {} if same else {"pipeline": "other"}
    table.append(1 if same else 0, ids_of(5), **rival)
    done = tiering.commit_messages([message])
    expect(
        done.outcome,
        RoundOutcome.ALREADY_THERE if same else RoundOutcome.PUBLISHED,
        "the outcome of a round that another driver came before",
    )
    expect(
        table.ids,
        sorted(ids_of(0) + ids_of(5) + ([] if same else ids_of(1))),
        "rows of a round that another driver came before",
    )


def test_an_epoch_that_came_before_the_round_began_is_done(table: Table) -> None:
    table.append(0)
    storage, info = table.lake.storage, table.info
    tiering = TieringRound(storage.tiering_factory(info), token=token(0))
    expect(tiering.begin(storage.state(info)), Decision.DONE, "the decision about an epoch that is there")
    expect(tiering.confirm_done().outcome, RoundOutcome.ALREADY_THERE, "the outcome of an epoch that is there")
    expect(table.ids, ids_of(0), "rows after an epoch that is there")


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_table_made_anew_after_the_round_began(table: Table, epoch: int) -> None:
    """No handle of the table that was dropped leads into the one that has its name."""
    if epoch:
        table.append(0)
    storage, info = table.lake.storage, table.info
    factory, state = storage.tiering_factory(info), storage.state(info)
    tiering = TieringRound(factory, token=token(epoch))
    expect(tiering.begin(state), Decision.PROCEED, "the decision about the next epoch")
    message = table.stage(ids_of(epoch), factory=factory)
    table.lake.storage.catalog().drop_table(table.path)
    table.lake.create()
    with refused(LaketierError, "a round is published that began before the table was made anew"):
        tiering.commit_messages([message])
    expect(table.ids, [], "rows of the table that was made anew")
    expect(table.watermark(), None, "the watermark of the table that was made anew")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_column_added_after_the_round_began(table: Table) -> None:
    table.append(0)
    storage, info = table.lake.storage, table.info
    factory, state = storage.tiering_factory(info), storage.state(info)
    tiering = TieringRound(factory, token=token(1))
    tiering.begin(state)
    message = table.stage(ids_of(1), factory=factory)
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    with refused(LaketierError, "a round is published that began before a column was added", match="schema"):
        tiering.commit_messages([message])
    expect(table.ids, ids_of(0), "rows after a round of an old schema was refused")


def test_a_plan_of_a_state(table: Table) -> None:
    """Of that state, or of what is current: the plan says which."""
    table.append(0)
    storage, info = table.lake.storage, table.info
    source, state = storage.source(info), storage.state(info)
    table.append(1)
    current = table.info.snapshot_id
    plan = source.plan(ScanRequest(state=state))
    assert plan.snapshot_id in (state.snapshot_id, current), (
        f"a plan of a state is of that state or of what is current: found {plan.snapshot_id}"
    )
    expected = ids_of(0) if plan.snapshot_id == state.snapshot_id else ids_of(0) + ids_of(1)
    rows = read_pinned(source, plan, table.lake.plugin.features)
    if rows is not None:
        expect(
            sorted(rows["id"].to_pylist()), expected, "rows of a plan of a state, of the snapshot that the plan names"
        )
    expect(source.plan(ScanRequest()).snapshot_id, current, "the snapshot of a plan without a state: what is current")


@pytest.mark.needs(Feature.TIME_TRAVEL)
def test_a_snapshot_that_is_named_counts_for_more_than_a_state(table: Table) -> None:
    table.append(0)
    storage, info = table.lake.storage, table.info
    source, state = storage.source(info), storage.state(info)
    table.append(1)
    named = table.info.snapshot_id
    plan = source.plan(ScanRequest(snapshot_id=named, state=state))
    expect(plan.snapshot_id, named, "the snapshot of a plan that names one beside a state")
    expect(
        sorted(read_plan(source, plan)["id"].to_pylist()),
        ids_of(0) + ids_of(1),
        "rows of a plan that names a snapshot beside a state",
    )


@pytest.mark.needs(Feature.UPSERT)
def test_rows_merged_with_a_state_that_is_over(lake: Lake) -> None:
    table = lake.create(name="db.keyed", primary_key=("id",))
    table.append(0)
    storage, info = table.lake.storage, table.info
    tiering = TieringRound(storage.tiering_factory(info), token=token(1), mode=WriteMode.UPSERT)
    tiering.begin(storage.state(info))
    expect(tiering.base_snapshot, info.snapshot_id, "the snapshot that a round with a primary key begins with")
    message = table.stage(ids_of(1), factory=storage.tiering_factory(info), mode=WriteMode.UPSERT)
    table.append(0, ids_of(5), pipeline="other")
    with refused(LaketierError, "rows are published that were merged with a state that is over", match="changed while"):
        tiering.commit_messages([message])
    expect(table.ids, sorted(ids_of(0) + ids_of(5)), "rows after a stale merge was refused")
