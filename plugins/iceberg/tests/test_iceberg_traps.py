"""The traps of research/ICEBERG_DELTA.md, each tried against the real pyiceberg: first that the trap is there, where
that can be shown through pyiceberg's own calls, then that the plugin does not fall into it."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from laketier.spi import AddColumn, CommitError, Conflict, TableChanged, UnknownOutcome, WriteMode
from laketier.tiering import RetryPolicy, RoundOutcome, TieringRound
from laketier_iceberg.committer import IcebergCommitter
from laketier_iceberg.history import WATERMARK


def test_pyicebergs_own_stale_property_commit_moves_a_watermark_back(events: Any) -> None:
    events.table().append(pa.table({"id": [1], "s": ["a"]}))
    stale = events.table()
    with events.table().transaction() as newer:
        newer.set_properties({"mark": "7"})
    with stale.transaction() as older:
        older.set_properties({"mark": "6"})
    assert events.table().properties["mark"] == "6"


def test_a_stale_empty_epoch_is_refused(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    late, early = events.committer(), events.committer()
    late_state = late.open()
    early.publish(early.open(), [], events.watermark(1))
    with pytest.raises(Conflict):
        late.publish(late_state, [], events.watermark(0))
    assert events.committer().open().watermark("p").token.epoch == 1


def test_a_stale_data_epoch_is_refused_after_an_empty_one(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    late, early = events.committer(), events.committer()
    late_state, result = late.open(), events.stage(events.batch(10, 20))
    early.publish(early.open(), [], events.watermark(2))
    with pytest.raises(Conflict):
        late.publish(late_state, [result], events.watermark(1))
    assert events.ids() == list(range(10))


def test_the_first_snapshot_is_a_compare_and_set_too(events: Any) -> None:
    first, second = events.committer(), events.committer()
    states = first.open(), second.open()
    first.publish(states[0], [events.stage(events.batch(0, 5))], events.watermark(0))
    with pytest.raises(Conflict):
        second.publish(states[1], [events.stage(events.batch(0, 5))], events.watermark(0))
    assert events.ids() == list(range(5))


def test_pyicebergs_default_retries_append_a_stale_handle_twice_and_ours_does_not(events: Any) -> None:
    rows = pa.table({"id": list(range(10)), "s": ["x"] * 10})
    first, replay = events.table(), events.table()
    first.append(rows)
    replay.append(rows)
    assert len(events.ids()) == 20

    before = events.ids()
    original, late = events.committer(), events.committer()
    states = original.open(), late.open()
    result = events.stage(events.batch(100, 110))
    original.publish(states[0], [result], events.watermark(0))
    with pytest.raises(Conflict):
        late.publish(states[1], [result], events.watermark(0))
    assert len(events.ids()) == len(before) + 10


class _Wire:
    """Stands between the plugin and the real catalog, as a proxy that loses or repeats does."""

    def __init__(self, catalog: Any, error: Exception, *, land: bool) -> None:
        self._catalog, self._error, self._land = catalog, error, land
        self.calls = 0

    def commit_table(self, *arguments: Any) -> Any:
        self.calls += 1
        if self._land:
            self._catalog.commit_table(*arguments)
        raise self._error


class _Committer(IcebergCommitter):
    """The plugin's committer, whose first table handles go through a wire."""

    def __init__(self, events: Any, error: Exception, *, land: bool, breaks: int = 1) -> None:
        real = events.committer("commit-1")
        super().__init__(real._settings, real._plan, real._context, expire=False)
        self._error, self._land, self._breaks = error, land, breaks

    def open(self) -> Any:
        state = super().open()
        if self._breaks:
            self._breaks -= 1
            state.table.catalog = _Wire(state.table.catalog, self._error, land=self._land)
        return state


def _publish(events: Any, committer: IcebergCommitter, start: int, epoch: int | None) -> Any:
    from laketier.tiering.publish import publish

    token = None if epoch is None else events.token(epoch)
    policy = RetryPolicy(first_wait_seconds=0.001)
    results = [events.stage(events.batch(start, start + 10))]
    return publish(committer, results, token=token, commit_id="commit-1", policy=policy)


def test_pyicebergs_own_cleanup_makes_a_table_unreadable_after_a_409_that_landed(events: Any) -> None:
    table = events.table()
    table.metadata.properties["commit.retry.num-retries"] = "0"
    table.catalog = _Wire(table.catalog, CommitFailedException("409"), land=True)
    with pytest.raises(CommitFailedException):
        table.append(pa.table({"id": [1], "s": ["a"]}))
    with pytest.raises(FileNotFoundError):
        events.ids()


@pytest.mark.parametrize("epoch", [1, None])
def test_a_409_that_landed_leaves_the_table_readable_and_the_epoch_there_once(events: Any, epoch: int | None) -> None:
    events.round(events.token(0), events.batch(0, 10))
    committer = _Committer(events, CommitFailedException("409"), land=True)
    assert _publish(events, committer, 10, epoch).outcome is RoundOutcome.PUBLISHED
    assert events.ids() == list(range(20))
    if epoch is not None:
        assert TieringRound(events.factory, token=events.token(epoch)).begin().value == "done"


@pytest.mark.parametrize("epoch", [1, None])
@pytest.mark.parametrize("land", [True, False])
def test_an_unknown_outcome_is_resolved_by_looking(events: Any, epoch: int | None, land: bool) -> None:
    events.round(events.token(0), events.batch(0, 10))
    committer = _Committer(events, CommitStateUnknownException("502"), land=land)
    outcome = _publish(events, committer, 10, epoch).outcome
    assert outcome is (RoundOutcome.RECOVERED if land else RoundOutcome.PUBLISHED)
    assert events.ids() == list(range(20))


def test_a_409_about_nothing_from_a_server_is_unknown_and_deletes_nothing(events: Any) -> None:
    committer = _Committer(events, CommitFailedException("409"), land=False)
    with pytest.raises(UnknownOutcome, match="nothing that it depends on has changed"):
        committer.publish(committer.open(), [events.stage(events.batch(0, 1))], events.watermark(0))
    assert len(_manifests(events)) == 2


def _manifests(events: Any) -> list[Any]:
    from pathlib import Path

    return sorted(Path(events.info.location, "metadata").glob("*.avro"))


def test_a_certain_conflict_leaves_no_manifests_behind(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    committer, rival = events.committer(), events.committer()
    state, result = committer.open(), events.stage(events.batch(10, 20))
    rival.publish(rival.open(), [], events.watermark(0, pipeline="other"))
    before = _manifests(events)
    with pytest.raises(Conflict):
        committer.publish(state, [result], events.watermark(1))
    assert _manifests(events) == before
    committer.discard([result])
    committer.discard([result])
    assert events.ids() == list(range(10))


def test_a_locked_catalog_is_unknown_and_lands_once(events: Any, warehouse: Any) -> None:
    import sqlite3

    from sqlalchemy.exc import OperationalError

    committer = events.committer()
    state, result = committer.open(), events.stage(events.batch(0, 10))
    state.table.catalog.engine.dispose()
    state.table.catalog.engine = _impatient(warehouse)
    lock = sqlite3.connect(warehouse / "catalog.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OperationalError, match="locked"):
        committer.publish(state, [result], events.watermark(0))
    lock.execute("ROLLBACK")
    lock.close()
    again = committer.open()
    assert again.watermark("p") is None
    committer.publish(again, [result], events.watermark(0))
    assert events.ids() == list(range(10))


def _impatient(warehouse: Any) -> Any:
    from sqlalchemy import create_engine

    return create_engine(f"sqlite:///{warehouse}/catalog.db?timeout=0.01")


def test_the_spec_id_that_from_args_drops_is_set(make: Any) -> None:
    from laketier.spi import PartitionField, Transform
    from laketier_iceberg.data_files import data_files

    table = make(partition_by=(PartitionField("id", Transform.BUCKET, 2),))
    with table.table().update_spec() as update:
        update.add_identity("s")
    fresh = type(table)(
        table.storage,
        info := table.storage.catalog().load_table(table.info.path),
        table.storage.tiering_factory(info),
    )
    assert info.spec_id == 1
    files = data_files(fresh.table(), [fresh.stage(fresh.batch(0, 10))], info.location)
    assert {file.spec_id for file in files} == {1}
    assert {len(file.partition) for file in files} == {2}


def test_a_schema_changed_between_staging_and_publish_is_refused(events: Any) -> None:
    result = events.stage(events.batch(0, 10))
    events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("new", pa.int32()))])
    with pytest.raises(TableChanged, match="schema changed"):
        TieringRound(events.factory, token=events.token(0)).commit([result])
    assert events.ids() == []


def test_a_schema_changed_between_open_and_publish_is_a_conflict(events: Any) -> None:
    committer = events.committer()
    state, result = committer.open(), events.stage(events.batch(0, 10))
    events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("new", pa.int32()))])
    with pytest.raises(Conflict):
        committer.publish(state, [result], events.watermark(0))
    assert events.ids() == []


def test_a_recreated_table_is_refused(events: Any) -> None:
    result = events.stage(events.batch(0, 10))
    committer = events.committer()
    state = committer.open()
    catalog = events.storage.catalog()
    catalog.drop_table(events.info.path)
    catalog.create_table(events.info.path, events.info.descriptor)
    with pytest.raises(CommitError, match="gone"):
        committer.publish(state, [result], events.watermark(0))
    with pytest.raises(TableChanged, match="recreated"):
        TieringRound(events.factory, token=events.token(0)).commit([result])


def test_a_stale_overwrite_is_refused_and_a_fresh_one_is_atomic(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    late = events.committer(mode=WriteMode.OVERWRITE)
    state, result = late.open(), events.stage(events.batch(50, 55))
    events.round(events.token(0, "other"), events.batch(10, 20))
    with pytest.raises(Conflict):
        late.publish(state, [result], events.watermark(1))
    assert events.ids() == list(range(20))
    late.publish(late.open(), [result], events.watermark(1))
    assert events.ids() == list(range(50, 55))
    now = events.committer().open()
    assert now.watermark("other").token.epoch == 0
    assert now.watermark("p").token.epoch == 1
    summary = events.table().current_snapshot().summary
    assert (summary["deleted-records"], summary["added-records"], summary["total-records"]) == ("20", "5", "5")


def test_an_overwrite_with_nothing_empties_the_table(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    events.round(events.token(1), mode=WriteMode.OVERWRITE)
    assert events.ids() == []
    events.round(events.token(2), events.batch(0, 3))
    assert events.ids() == [0, 1, 2]


def test_every_epoch_makes_one_snapshot_that_its_watermark_names(events: Any) -> None:
    for epoch in range(4):
        batches = [events.batch(epoch * 10, epoch * 10 + 10)] if epoch % 2 else []
        events.round(events.token(epoch), *batches)
    table = events.table()
    assert len(table.metadata.snapshots) == 4
    head = table.current_snapshot()
    assert events.committer().open().watermark("p").snapshot_id == head.snapshot_id
    assert head.summary["spark.sql.streaming.queryId"] == "run"
    assert head.summary["spark.sql.streaming.epochId"] == "3"
    assert f'"snapshot":{head.snapshot_id}' in table.properties[WATERMARK + "p"]


def test_one_committer_per_thread_loses_no_commit(events: Any) -> None:
    failures: list[BaseException] = []

    def run(pipeline: str) -> None:
        try:
            for epoch in range(4):
                events.round(events.token(epoch, pipeline), events.batch(0, 2))
        except BaseException as error:  # noqa: BLE001 - shown below, in the main thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(events.ids()) == 3 * 4 * 2
