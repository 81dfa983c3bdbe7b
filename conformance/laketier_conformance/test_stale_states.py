"""Every publish is a compare-and-set against the state that `open` saw."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

from laketier.spi import (
    COLLECTOR,
    AddColumn,
    Conflict,
    Feature,
    LaketierError,
    LakeTieringFactory,
    LakeWriter,
    TableChanged,
    TableNotFound,
    Watermark,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import Table, batch, ids_of, token

Results = Callable[[Table], list[WriteResult]]


def _rows(table: Table) -> list[WriteResult]:
    return [table.staged(ids_of(1))]


def _nothing(_: Table) -> list[WriteResult]:
    return []


@pytest.mark.parametrize("results", [_rows, _nothing], ids=["rows", "empty"])
@pytest.mark.parametrize("rival", [_rows, _nothing], ids=["against-rows", "against-empty"])
def test_of_two_drivers_one_wins(table: Table, results: Results, rival: Results) -> None:
    """Both opened the same state of the same pipeline. The second must lose, for certain and with nothing landed."""
    table.append(0)
    first, second = table.committer(), table.committer()
    state_1, state_2 = first.open(), second.open()
    landed = rival(table)
    first.publish(state_1, landed, Watermark(token(1), "first"))
    before = table.ids
    with refused(Conflict, "the second of two drivers publishes that opened the same state"):
        second.publish(state_2, results(table), Watermark(token(1), "second"))
    first.close()
    second.close()
    expect(table.ids, before, "rows after the second driver was refused")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after two drivers raced"
    expect(mark.commit_id, "first", "the commit in the watermark: that of the driver that won")


def test_a_state_serves_one_publish(table: Table) -> None:
    table.append(0)
    committer = table.committer()
    state = committer.open()
    committer.publish(state, [table.staged(ids_of(1))], Watermark(token(1), "c"))
    with refused(Conflict, "a second commit is published against one state"):
        committer.publish(state, [table.staged(ids_of(2))], Watermark(token(2), "c"))
    committer.close()
    expect(table.ids, ids_of(0) + ids_of(1), "rows after a second commit of one state was refused")


def test_the_first_round_is_a_compare_and_set_too(table: Table) -> None:
    first, second = table.committer(), table.committer()
    state_1, state_2 = first.open(), second.open()
    first.publish(state_1, [table.staged(ids_of(0))], Watermark(token(0), "first"))
    with refused(Conflict, "the second of two drivers publishes the first epoch"):
        second.publish(state_2, [table.staged(ids_of(0))], Watermark(token(0), "second"))
    first.close()
    second.close()
    expect(table.ids, ids_of(0), "rows after two drivers raced for the first epoch")


def test_a_batch_and_a_stale_pipeline(table: Table) -> None:
    """Without a watermark it is a compare-and-set too: the batch was checked against another table than there is."""
    table.append(0)
    batch, pipeline = table.committer(), table.committer()
    state_1, state_2 = batch.open(), pipeline.open()
    pipeline.publish(state_2, [table.staged(ids_of(1))], Watermark(token(1), "c"))
    with refused(Conflict, "a batch without a pipeline is published against a state that a round made stale"):
        batch.publish(state_1, [table.staged(ids_of(2))], None)
    batch.close()
    pipeline.close()
    expect(table.ids, ids_of(0) + ids_of(1), "rows after a batch was refused that was opened before a round")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark beside a batch"
    expect(mark.token.epoch, 1, "the epoch of the watermark beside a batch")


@pytest.mark.parametrize("rival", [_rows, _nothing], ids=["rows", "empty"])
@pytest.mark.parametrize("pipeline", ["other", COLLECTOR], ids=["pipeline", "collection"])
def test_a_state_that_another_pipeline_made_stale(table: Table, rival: Results, pipeline: str) -> None:
    """The driver's own pipeline stands where it stood, and the table does not: it decides anew. A collection of orphans
    tells with its watermark which attempts it takes the files of, and deletes them then."""
    table.append(0)
    late, other = table.committer(), table.committer()
    state, theirs = late.open(), other.open()
    other.publish(theirs, rival(table), Watermark(token(0, pipeline), "c"))
    other.close()
    before = table.ids
    told = "an epoch of rows is published against a state that another pipeline made stale"
    with refused(Conflict, told):
        late.publish(state, [table.staged(ids_of(2))], Watermark(token(1), "late"))
    late.close()
    expect(table.ids, before, f"rows after {told}")


def test_other_pipelines_cost_another_loop_only(table: Table) -> None:
    table.append(0)
    staged = table.staged(ids_of(1))
    round_ = TieringRound(table.factory, token=token(1))
    round_.begin()
    for epoch in range(3):
        table.append(epoch, ids_of(5 + epoch), pipeline="other")
    round_.commit([staged])
    expect(
        table.ids,
        sorted(ids_of(0) + ids_of(1) + ids_of(5) + ids_of(6) + ids_of(7)),
        "rows of a round that three commits of another pipeline came before",
    )


def test_a_lease_that_was_taken_over(table: Table) -> None:
    """The old driver opened before the new one published: its attempt loses, and the next look refuses it."""
    from laketier.spi import Fenced

    table.append(0, fence=1)
    zombie = table.committer()
    state = zombie.open()
    staged = table.staged(ids_of(1))
    table.append(1, ids_of(2), fence=2)
    with refused(Conflict, "a driver publishes whose lease was taken over after it opened"):
        zombie.publish(state, [staged], Watermark(token(1, fence=1), "zombie"))
    zombie.close()
    with refused(Fenced, "a driver commits whose lease was taken over"):
        table.commit([staged], token(1, fence=1))
    expect(table.ids, ids_of(0) + ids_of(2), "rows after the driver with the old lease was refused")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_schema_that_changed_after_staging(table: Table) -> None:
    """Libraries accept such files and turn values into nulls: they are refused before they are published."""
    table.append(0)
    staged = table.staged(ids_of(1))
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    with refused(TableChanged, "files are committed that were staged before a column was added", match="schema"):
        table.commit([staged], token(1))
    expect(table.ids, ids_of(0), "rows after files of an old schema were refused")
    expect(table.append(1).rows, 5, "the number of rows of the next round after files of an old schema were refused")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_schema_that_changed_between_open_and_publish(table: Table) -> None:
    table.append(0)
    committer = table.committer()
    state = committer.open()
    staged = table.staged(ids_of(1))
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    with refused(Conflict, "files are published against a state from before a column was added"):
        committer.publish(state, [staged], Watermark(token(1), "c"))
    committer.close()
    expect(table.ids, ids_of(0), "rows after a publish with an old schema was refused")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after a column was added"
    expect(mark.token.epoch, 0, "the epoch of the watermark after a column was added")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_recreated_table(table: Table) -> None:
    table.append(0)
    staged = table.staged(ids_of(1))
    tiering = TieringRound(table.factory, token=token(1))
    tiering.begin()
    old = table.committer()
    old.open()
    table.lake.storage.catalog().drop_table(table.path)
    new = table.lake.create().info.table_uuid
    with refused(LaketierError, "a round is committed that began before the table was made anew"):
        tiering.commit([staged])
    with refused(
        TableChanged, "files are committed that were staged before the table was made anew", match="recreated"
    ):
        table.commit([staged], token(0))
    expect(table.ids, [], "rows of the table that was made anew")
    with suppress(LaketierError):
        seen = old.open().table_uuid
        expect(seen, new, "the identity that a committer of the dropped table tells, of the table that was made anew")
    old.close()


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_recreated_between_open_and_publish(table: Table) -> None:
    """Whatever is raised: nothing may land in the new table, which the state knows nothing of."""
    table.append(0)
    committer = table.committer()
    state = committer.open()
    staged = table.staged(ids_of(1))
    table.lake.storage.catalog().drop_table(table.path)
    table.lake.create()
    with refused(Exception, "files are published against a state from before the table was made anew"):
        committer.publish(state, [staged], Watermark(token(1), "c"))
    committer.close()
    expect(table.ids, [], "rows of the table that was made anew")
    expect(table.watermark(), None, "the watermark of the table that was made anew")
    expect(table.append(0).rows, 5, "the number of rows of the first round of the table that was made anew")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_recreated_with_as_many_commits(table: Table) -> None:
    """An epoch without rows is published against a state of the dropped table, and the new one has had a round like the
    old one's. So neither a number nor a file that is gone tells the two apart: the identity has to."""
    table.append(0)
    committer = table.committer()
    state = committer.open()
    table.lake.storage.catalog().drop_table(table.path)
    table.lake.create()
    table.append(0)
    before = table.info
    with refused(
        Exception, "an epoch is published against a state from before the table was made anew, with as many commits"
    ):
        committer.publish(state, [], Watermark(token(1), "c"))
    committer.close()
    after = table.info
    expect(
        (after.table_uuid, after.snapshot_id),
        (before.table_uuid, before.snapshot_id),
        "identity and snapshot of a table that was made anew, after an epoch of the dropped one",
    )
    mark = table.watermark()
    assert mark is not None, "the table that was made anew has the watermark of its own round"
    expect(
        mark.token.epoch, 0, "the epoch of the watermark of a table that was made anew, after one of the dropped one"
    )
    expect(table.append(1).rows, 5, "the number of rows of the next round of the table that was made anew")
    expect(table.ids, ids_of(0) + ids_of(1), "rows of the table that was made anew")


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("results", [_rows, _nothing], ids=["rows", "empty"])
def test_a_table_dropped_between_open_and_publish(table: Table, results: Results) -> None:
    """Whatever is raised: the table stays dropped. A publish that makes folders would bring half of it back."""
    table.append(0)
    committer = table.committer()
    state = committer.open()
    staged = results(table)
    catalog = table.lake.storage.catalog()
    catalog.drop_table(table.path)
    with refused(Exception, "files are published against a state from before the table was dropped"):
        committer.publish(state, staged, Watermark(token(1), "c"))
    committer.close()
    with refused(TableNotFound, "a table is loaded that was dropped, and was published to afterwards"):
        catalog.load_table(table.path)
    expect(catalog.list_tables(), [], "the tables after the only one was dropped, and published to afterwards")
    expect(table.lake.create().ids, [], "rows of the next table of this name")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_writer_of_a_table_that_was_dropped(table: Table) -> None:
    """It may fail, or stage files that nobody will publish. No table is there afterwards, and the next one of this name
    can be made, and has none of its rows."""
    table.append(0)
    factory = table.factory
    catalog = table.lake.storage.catalog()
    begun = factory.create_writer(WriterInitContext(attempt=new_attempt_id()))
    catalog.drop_table(table.path)
    staged = [_late(lambda: begun), _late(lambda: _writer(factory))]
    expect(catalog.list_tables(), [], "the tables after the only one was dropped, and late tasks wrote for it")
    with goes_well("a table is dropped, late tasks write for it, and the next table of its name is made"):
        again = table.lake.create()
    expect(again.ids, [], "rows of the next table of this name, after late tasks of the dropped one")
    for late in (*staged, _late(lambda: _writer(factory))):
        if late is not None and late.files:
            with refused(TableChanged, "files are committed that a task of the dropped table staged"):
                again.commit([late], token(0))
    begun.abort()
    expect(again.append(0).outcome, RoundOutcome.PUBLISHED, "the outcome of the first round of the next table")
    expect(again.ids, ids_of(0), "rows of the next table, beside late tasks of the dropped one")


def _writer(factory: LakeTieringFactory[WriteResult]) -> LakeWriter[WriteResult]:
    return factory.create_writer(WriterInitContext(attempt=new_attempt_id()))


def _late(made: Callable[[], LakeWriter[WriteResult]]) -> WriteResult | None:
    """What a task stages, if it does not fail."""
    try:
        writer = made()
        writer.write(batch(ids_of(1)))
        return writer.complete()
    except Exception:  # noqa: BLE001 - its table is gone, and it may say so as it likes
        return None
