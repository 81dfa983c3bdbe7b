"""The atomic step against the real library, with every trap that research found."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from laketier.kit import failpoints
from laketier.spi import (
    Conflict,
    CorruptTable,
    Decision,
    OutsideTable,
    RolledBack,
    Stale,
    TableChanged,
    TableError,
    Token,
    UnknownOutcome,
    UnsafeTable,
    WatermarkLost,
    WriteMode,
)
from laketier.spi.clocks import shifted
from laketier.tiering import RoundOutcome, TieringRound


def log_entry(lake, version):
    return Path(lake.uri, "_delta_log", f"{version:020}.json")


def foreign_append(lake, *values):
    write_deltalake(lake.uri, pa.table({"id": list(values), "v": ["f"] * len(values)}), mode="append")


def test_epochs_are_appended_once_and_a_replay_writes_nothing(lake, support):
    lake.create()
    for epoch in range(3):
        assert lake.epoch(epoch).outcome is RoundOutcome.PUBLISHED
    version = lake.table.snapshot_id
    replay = TieringRound(lake.factory(), token=Token("p", "run", 2, content="2"))
    assert replay.begin() is Decision.DONE
    assert lake.table.snapshot_id == version
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [0, 1, 2]


def test_the_watermark_names_its_version_and_comes_back_as_it_was(lake, support):
    lake.create()
    lake.epoch(0)
    state = lake.committer().open()
    watermark = state.watermark("p")
    assert watermark.token == Token("p", "run", 0, content="0")
    assert (watermark.snapshot_id, watermark.rows, state.snapshot_id) == (1, 1, 1)
    assert state.watermark("other") is None


def test_pipelines_with_awkward_names_do_not_meet(lake, support):
    lake.create()
    names = ["a", "a/b", "fence/a", "epoch/a", "a#digest", "../x", "ü 💧", "."]
    for name in names:
        lake.epoch(0, support.ids(names.index(name)), pipeline=name)
    state = lake.committer().open()
    assert [state.watermark(name).token.pipeline for name in names] == names
    with pytest.raises(Stale):
        lake.epoch(1, pipeline="a") and lake.epoch(0, pipeline="a")


def test_an_empty_epoch_moves_the_watermark_and_is_a_compare_and_set(lake, support):
    lake.create()
    first, second = lake.committer(), lake.committer()
    seen, stale = first.open(), second.open()
    first.publish(seen, [], support.watermark(0))
    with pytest.raises(Conflict):
        second.publish(stale, [], support.watermark(0))
    assert lake.committer().open().watermark("p").token.epoch == 0


@pytest.mark.parametrize("mode", [WriteMode.APPEND, WriteMode.OVERWRITE])
def test_a_stale_state_conflicts_whoever_committed(lake, support, mode):
    lake.create()
    lake.epoch(0)
    staged = lake.stage(support.ids(1))
    committer = lake.committer(mode)
    stale = committer.open()
    foreign_append(lake, 7)
    with pytest.raises(Conflict, match="version 2"):
        committer.publish(stale, [staged], support.watermark(1))
    assert support.values(lake.read()) == [0, 7]
    committer.publish(committer.open(), [staged], support.watermark(1))
    assert support.values(lake.read()) == ([1] if mode is WriteMode.OVERWRITE else [0, 1, 7])


def test_a_state_is_good_for_one_publish(lake, support):
    lake.create()
    committer = lake.committer(commit_id="one")
    state = committer.open()
    committer.publish(state, [lake.stage(support.ids(1))], None)
    with pytest.raises(Conflict):
        lake.committer(commit_id="two").publish(state, [lake.stage(support.ids(2))], None)
    assert support.values(lake.read()) == [1]


def test_two_pipelines_rebase_and_both_get_in(lake, support):
    lake.create()
    rounds = []
    for pipeline in ("p", "q"):
        factory = lake.factory()
        tiering = TieringRound(factory, token=Token(pipeline, "run", 0))
        tiering.begin()
        rounds.append((tiering, lake.stage(support.ids(len(rounds)), factory)))
    for tiering, staged in rounds:
        assert tiering.commit([staged]).outcome is RoundOutcome.PUBLISHED
    assert support.values(lake.read()) == [0, 1]


def test_of_two_drivers_of_one_epoch_the_second_sees_that_it_is_done(lake, support):
    lake.create()
    drivers = []
    for _ in range(2):
        factory = lake.factory()
        tiering = TieringRound(factory, token=Token("p", "run", 0))
        tiering.begin()
        drivers.append((tiering, lake.stage(support.ids(1), factory)))
    outcomes = [tiering.commit([staged]).outcome for tiering, staged in drivers]
    assert outcomes == [RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE]
    assert support.values(lake.read()) == [1]
    files = list(Path(lake.uri).glob("*.parquet"))
    assert len(files) == 1, "the loser's file was not discarded"


def test_overwrite_replaces_all_rows_and_keeps_other_pipelines(lake, support):
    lake.create()
    lake.epoch(0, pipeline="q")
    lake.epoch(0, support.ids(5, 6), mode=WriteMode.OVERWRITE)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [5, 6]
    assert lake.committer().open().watermark("q").token.epoch == 0
    lake.append(pa.table({"id": pa.array([], pa.int64())}), mode=WriteMode.OVERWRITE)
    assert lake.read().num_rows == 0
    assert lake.committer().open().watermark("p").token.epoch == 0


def test_a_commit_with_a_lost_answer_is_found_by_its_watermark(lake, support, monkeypatch):
    lake.create()
    monkeypatch.setattr(failpoints, "_hits", {})
    monkeypatch.setenv(failpoints.VARIABLE, "publish.between_commit_and_checkpoint=error@1")
    result = lake.epoch(0)
    assert result.outcome is RoundOutcome.RECOVERED
    assert support.values(lake.read()) == [0]


def test_a_batch_with_a_lost_answer_is_found_by_its_commit_id(lake, support, monkeypatch):
    lake.create()
    foreign_append(lake, 8)
    monkeypatch.setattr(failpoints, "_hits", {})
    monkeypatch.setenv(failpoints.VARIABLE, "publish.between_commit_and_checkpoint=error@1")
    assert lake.append(support.ids(1)).outcome is RoundOutcome.RECOVERED
    assert support.values(lake.read()) == [1, 8]


def test_landed_says_no_only_where_it_can_know(lake, support):
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    assert lake.committer().open().landed("never") is False
    committer = lake.committer(commit_id="mine")
    committer.publish(committer.open(), [], None)
    assert lake.committer().open().landed("mine") is True


def test_a_log_with_a_gap_is_corrupt(lake, support):
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    committer = lake.committer()
    log_entry(lake, 1).unlink()
    with pytest.raises(CorruptTable, match="_delta_log"):
        committer.open()


def test_a_log_that_is_cleaned_up_while_it_is_read_is_an_error_that_says_so(lake, support):
    """A table that keeps its log for no time at all; transactions are looked for when they are asked for."""
    lake.create()
    lake.epoch(0)
    state = lake.committer().open()
    foreign_append(lake, 7)
    log_entry(lake, 1).unlink()
    with pytest.raises(TableError, match=r"could not be read any more.*logRetentionDuration"):
        state.watermark("another")


def test_landed_refuses_to_guess_after_log_cleanup(lake, support):
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    DeltaTable(lake.uri).create_checkpoint()
    for version in range(3):
        log_entry(lake, version).unlink()
    with pytest.raises(UnknownOutcome, match="cleaned up"):
        lake.committer().open().landed("never")


def test_an_already_exists_for_our_own_entry_is_a_success(lake, support, monkeypatch):
    """An object store that retried a put whose first answer was lost says that the entry exists. It does: ours."""
    lake.create()
    put = DeltaTable.create_write_transaction

    def put_and_put_again(self, *arguments, **keywords):
        put(self, *arguments, **keywords)
        put(self, *arguments, **keywords)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", put_and_put_again)
    committer = lake.committer()
    state = committer.open()
    assert committer.publish(state, [lake.stage(support.ids(1))], None).snapshot_id == 1
    with pytest.raises(Conflict):
        committer.publish(state, [lake.stage(support.ids(2))], None)
    assert support.values(lake.read()) == [1]


def test_a_failed_checkpoint_is_no_failed_commit(lake, support, monkeypatch, caplog):
    lake.create(delta__checkpointInterval="1")
    monkeypatch.setattr(DeltaTable, "create_checkpoint", lambda self: (_ for _ in ()).throw(OSError("disk full")))
    assert lake.epoch(0).outcome is RoundOutcome.PUBLISHED
    assert "checkpoint failed" in caplog.text


@pytest.mark.parametrize("days", [-10, 10])
def test_a_host_whose_clock_is_days_off_cleans_nothing_up(lake, days, caplog):
    """delta-rs forgets tombstones, transactions and log entries by its host's clock, whenever it makes a checkpoint."""
    lake.create(delta__checkpointInterval="1")
    with shifted(days * 86_400_000):
        assert lake.epoch(0).outcome is RoundOutcome.PUBLISHED
    assert list(Path(lake.uri, "_delta_log").glob("*.checkpoint.parquet")) == []
    assert "days off" in caplog.text
    assert lake.epoch(1).outcome is RoundOutcome.PUBLISHED
    assert len(list(Path(lake.uri, "_delta_log").glob("*.checkpoint.parquet"))) == 1


def test_the_watermark_survives_foreign_commits_checkpoint_and_log_cleanup(lake, support):
    lake.create()
    lake.epoch(0)
    lake.epoch(1)
    for number in range(35):
        foreign_append(lake, 100 + number)
    handle = DeltaTable(lake.uri)
    handle.create_checkpoint()
    for version in range(handle.version()):
        log_entry(lake, version).unlink()
    *older, _newest = sorted(Path(lake.uri, "_delta_log").glob("*.checkpoint.parquet"))
    for checkpoint in older:
        checkpoint.unlink()
    watermark = lake.committer().open().watermark("p")
    assert (watermark.token.epoch, watermark.snapshot_id) == (1, 2)
    with pytest.raises(Stale):
        lake.epoch(0)
    lake.epoch(2)
    assert support.values(lake.read()) == [0, 1, 2, *range(100, 135)]


def test_a_stale_writer_after_log_cleanup_fails_closed(lake, support):
    lake.create()
    committer = lake.committer()
    stale = committer.open()
    for epoch in range(12):
        lake.epoch(epoch)
    for version in range(10):
        log_entry(lake, version).unlink()
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what delta-rs raises here differs by its mood
        committer.publish(stale, [lake.stage(support.ids(99))], support.watermark(0))
    assert not isinstance(caught.value, Conflict), "nothing in the log says who took version 1"
    assert isinstance(caught.value, Exception)
    assert 99 not in support.values(lake.read())
    assert lake.committer().open().watermark("p").token.epoch == 11


def test_tables_that_forget_transactions_are_refused(lake, lake_with, support):
    lake.create()
    lake.epoch(0)
    DeltaTable(lake.uri).alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 30 days"})
    with pytest.raises(UnsafeTable, match="accept-transaction-retention"):
        lake.factory()
    accepting = lake_with(accept_transaction_retention=True)
    assert accepting.epoch(1).outcome is RoundOutcome.PUBLISHED


def test_a_forgotten_pipeline_is_refused_and_not_replayed(lake_with, support):
    lake = lake_with(accept_transaction_retention=True)
    lake.create(delta__setTransactionRetentionDuration="interval 1 days")
    handle = DeltaTable(lake.uri)
    old = [Transaction(f"laketier/{what}/p", 3, 1) for what in ("epoch", "fence", "record")]
    handle.create_write_transaction(
        [], "append", handle.schema(), [], commit_properties=CommitProperties(app_transactions=old)
    )
    assert DeltaTable(lake.uri).transaction_version("laketier/epoch/p") is None, "delta-rs forgot it"
    with pytest.raises(WatermarkLost):
        lake.epoch(4)


def test_an_int_file_for_a_column_that_became_string_is_refused_by_its_fingerprint(lake, support):
    lake.create()
    factory = lake.factory()
    tiering = TieringRound(factory, token=Token("p", "run", 0))
    tiering.begin()
    staged = lake.stage(support.ids(1), factory)
    handle = DeltaTable(lake.uri)
    changed = Schema([Field("id", PrimitiveType("string")), Field("v", PrimitiveType("string"))])
    handle.create_write_transaction([], "overwrite", changed, [])
    assert lake.table.schema.field("id").type == pa.string()
    with pytest.raises(TableChanged, match="schema changed"):
        tiering.commit([staged])
    assert lake.read().num_rows == 0


def test_a_commit_across_a_metadata_change_is_refused(lake, support):
    lake.create()
    committer = lake.committer()
    stale = committer.open()
    staged = lake.stage(support.ids(1))
    DeltaTable(lake.uri).alter.add_columns([Field("extra", PrimitiveType("long"))])
    with pytest.raises(Conflict):
        committer.publish(stale, [staged], support.watermark(0))
    assert committer.open().schema_fingerprint != staged.schema_fingerprint


def test_the_fingerprint_is_stable_from_load_to_open_and_follows_the_schema(lake, support):
    lake.create(
        pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("l", pa.large_list(pa.large_string())),
                ("m", pa.map_(pa.string(), pa.list_(pa.int8()))),
                ("s", pa.struct([pa.field("ts", pa.timestamp("ms", "Europe/Berlin"), nullable=False)])),
            ]
        ),
        delta__checkpointInterval="1",
    )
    before = lake.table.schema_fingerprint
    assert lake.committer().open().schema_fingerprint == before
    lake.append(pa.table({"id": [1], "s": [{"ts": datetime(2020, 1, 1, tzinfo=UTC)}]}))
    assert lake.committer().open().schema_fingerprint == lake.table.schema_fingerprint == before
    DeltaTable(lake.uri).alter.drop_column_not_null("id")
    nullable = lake.table.schema_fingerprint
    DeltaTable(lake.uri).alter.add_columns([Field("extra", PrimitiveType("long"))])
    assert len({before, nullable, lake.table.schema_fingerprint}) == 3


def test_a_recreated_table_is_another_table(lake, support):
    lake.create()
    factory = lake.factory()
    tiering = TieringRound(factory, token=Token("p", "run", 0))
    tiering.begin()
    staged = lake.stage(support.ids(1), factory)
    lake.storage.catalog().drop_table(support.PATH)
    lake.create()
    with pytest.raises(TableChanged, match="recreated"):
        tiering.commit([staged])


@pytest.mark.parametrize("foreign_commits", [0, 3])
def test_a_restore_keeps_the_transaction_and_is_noticed(lake, support, foreign_commits):
    lake.create()
    lake.epoch(0)
    lake.epoch(1)
    DeltaTable(lake.uri).restore(1)
    for number in range(foreign_commits):
        foreign_append(lake, number)
    assert DeltaTable(lake.uri).transaction_version("laketier/epoch/p") == 1
    with pytest.raises(RolledBack, match="version 3"):
        lake.epoch(2)


def test_a_restore_stays_noticed_after_other_pipelines_and_log_cleanup(lake, support):
    lake.create()
    lake.epoch(0)
    lake.epoch(0, pipeline="q")
    DeltaTable(lake.uri).restore(1)
    lake.epoch(0, pipeline="r")
    lake.epoch(1, pipeline="r")
    handle = DeltaTable(lake.uri)
    handle.create_checkpoint()
    for version in range(handle.version()):
        log_entry(lake, version).unlink()
    for pipeline in ("p", "q"):
        with pytest.raises(RolledBack):
            lake.epoch(1, pipeline=pipeline)
    lake.epoch(2, pipeline="r")


def test_a_restore_to_a_version_after_the_last_round_loses_nothing_of_it(lake, support):
    lake.create()
    lake.epoch(0)
    foreign_append(lake, 7)
    foreign_append(lake, 8)
    DeltaTable(lake.uri).restore(2)
    lake.epoch(1)
    assert support.values(lake.read()) == [0, 1, 7]


def test_a_foreign_overwrite_is_noticed_and_adopting_is_the_way_out(lake, support):
    from laketier.tiering.pipelines import adopt

    lake.create()
    lake.epoch(0)
    write_deltalake(lake.uri, support.ids(50), mode="overwrite")
    with pytest.raises(RolledBack):
        lake.epoch(1)
    adopt(lake.factory(), "p", run="run", epoch=0)
    lake.epoch(1)
    assert support.values(lake.read()) == [1, 50]


def test_our_own_overwrite_and_foreign_deletes_are_no_reset(lake, support):
    lake.create()
    lake.epoch(0)
    lake.epoch(0, support.ids(9), pipeline="q", mode=WriteMode.OVERWRITE)
    DeltaTable(lake.uri).delete("id = 9")
    DeltaTable(lake.uri).optimize.compact()
    lake.epoch(1)
    assert support.values(lake.read()) == [1]


@pytest.mark.parametrize("damage", ["missing", "changed", "epoch"])
def test_a_damaged_record_is_never_none(lake, support, damage):
    lake.create()
    lake.epoch(0)
    record = next(Path(lake.uri, "_laketier").rglob("*.json"))
    if damage == "missing":
        record.unlink()
    elif damage == "changed":
        record.write_text(record.read_text().replace('"epoch":0', '"epoch":1'))
    else:
        handle = DeltaTable(lake.uri)
        properties = CommitProperties(app_transactions=[Transaction("laketier/epoch/p", 5, 1)])
        handle.create_write_transaction([], "append", handle.schema(), [], commit_properties=properties)
    with pytest.raises(RolledBack if damage == "missing" else CorruptTable):
        lake.committer().open().watermark("p")


@pytest.mark.parametrize("known", [["record"], ["record", "epoch"], ["record", "fence"]], ids=str)
def test_a_pipeline_that_is_known_in_part_is_corrupt(lake, known):
    lake.create()
    handle = DeltaTable(lake.uri)
    properties = CommitProperties(app_transactions=[Transaction(f"laketier/{name}/p", 5, 1) for name in known])
    handle.create_write_transaction([], "append", handle.schema(), [], commit_properties=properties)
    with pytest.raises(CorruptTable, match="in part only"):
        lake.committer().open().watermark("p")


def test_transactions_always_say_when_they_were_updated(lake, support):
    lake.create()
    lake.epoch(0)
    actions = [json.loads(line) for line in log_entry(lake, 1).read_bytes().splitlines()]
    transactions = [action["txn"] for action in actions if "txn" in action]
    assert {txn["appId"].rsplit("/", 1)[0] for txn in transactions} >= {"laketier/epoch", "laketier/fence"}
    assert all(txn["lastUpdated"] > 1_500_000_000_000 for txn in transactions)


def test_vacuum_takes_neither_records_nor_live_files(lake, support):
    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r")
    lake.epoch(0, pa.table({"id": [1, 2], "r": ["a b/ü%20", "plain"]}))
    lake.stage(pa.table({"id": [3], "r": ["orphan"]}))
    gone = DeltaTable(lake.uri).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len(gone) == 1
    assert "orphan" in gone[0]
    assert lake.committer().open().watermark("p").token.epoch == 0
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [1, 2]


def test_discard_deletes_what_was_staged_and_takes_a_second_call(lake, support):
    lake.create()
    staged = lake.stage(support.ids(1))
    committer = lake.committer()
    assert Path(lake.uri, staged.files[0].path).exists()
    committer.discard([staged])
    committer.discard([staged])
    assert not list(Path(lake.uri).glob("*.parquet"))


def test_files_of_another_partitioning_are_refused(lake):
    """Another writer repartitioned the table, under the same schema. delta-rs commits an entry that no reader takes,
    itself included."""
    lake.create(pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())]), "a")
    staged = lake.stage(pa.table({"id": [1], "a": ["x"], "b": ["y"]}))
    theirs = pa.table({"id": [2], "a": ["z"], "b": ["w"]})
    write_deltalake(lake.uri, theirs, mode="overwrite", schema_mode="overwrite", partition_by=["b"])
    with pytest.raises(TableChanged, match="partitioning changed"):
        TieringRound(lake.factory(), token=None).commit([staged])
    assert DeltaTable(lake.uri).to_pyarrow_table().equals(theirs)
    lake.append(pa.table({"id": [1], "a": ["x"], "b": ["y"]}))
    assert sorted(lake.read()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize(
    "partition",
    [
        (("n", "x"),),
        (("n", "6"),),
        (("n", "05"),),
        (("n", None),),
        (("n", ""),),
        (("n", "9" * 40),),
        (),
        (("n", "5"), ("id", "1")),
        (("id", "5"),),
        (("n", "5"), ("n", "5")),
    ],
    ids=str,
)
def test_a_forged_partition_is_not_published(lake, support, partition):
    """delta-rs commits an entry that no reader takes, itself included: one result would shut the whole table."""
    lake.create(pa.schema([("id", pa.int64()), ("n", pa.int32())]), "n")
    staged = lake.stage(pa.table({"id": [1], "n": pa.array([5], pa.int32())}))
    forged = replace(staged, files=(replace(staged.files[0], partition=partition),))
    committer = lake.committer()
    with pytest.raises(OutsideTable, match="partition"):
        committer.publish(committer.open(), [forged], None)
    committer.publish(committer.open(), [staged], None)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [1]


def test_a_result_whose_files_are_in_the_table_is_not_discarded(lake, support):
    """An old result, handed over again: attempt and files agree, and the rows are live."""
    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r")
    staged = lake.stage(pa.table({"id": [1], "r": ["a b"]}))
    TieringRound(lake.factory(), token=None).commit([staged])
    other = lake.stage(pa.table({"id": [2], "r": ["a b"]}))
    for checkpoint in (False, True):
        if checkpoint:
            DeltaTable(lake.uri).create_checkpoint()
        lake.committer().discard([staged, other])
        assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [1]
        assert not Path(lake.uri, other.files[0].path).exists()


def test_a_result_waits_while_the_log_is_cleaned_up(lake, support):
    """What OPTIMIZE took away is told by its tombstone, and a file without one was not published."""
    lake.create()
    old, late = lake.stage(support.ids(1)), lake.stage(support.ids(2))
    TieringRound(lake.factory(), token=None).commit([old])
    lake.epoch(0)
    DeltaTable(lake.uri).optimize.compact()
    DeltaTable(lake.uri).create_checkpoint()
    rows = sorted(support.values(DeltaTable(lake.uri).to_pyarrow_table()))
    for version in range(DeltaTable(lake.uri).version()):
        log_entry(lake, version).unlink()
    committer = lake.committer()
    with pytest.raises(OutsideTable, match="was published before"):
        committer.publish(committer.open(), [old], None)
    TieringRound(lake.factory(), token=None).commit([late])
    assert sorted(support.values(DeltaTable(lake.uri).to_pyarrow_table())) == sorted([*rows, 2])


def test_nothing_is_discarded_where_the_log_does_not_say_what_is_live(lake, support, caplog):
    lake.create()
    staged, committer = lake.stage(support.ids(1)), lake.committer()
    log_entry(lake, 0).unlink()
    committer.discard([staged])
    assert Path(lake.uri, staged.files[0].path).exists()
    assert "orphan collection" in caplog.text


def test_a_log_entry_that_a_listing_missed_is_looked_for_again(lake, support, monkeypatch):
    """The listing of a folder that others add files to may show a file and not one that was there before it."""
    lake.create()
    for epoch in range(4):
        lake.epoch(epoch)
    entry, hidden = log_entry(lake, 3), log_entry(lake, 3).with_suffix(".hidden")
    real, failed = deltalake.DeltaTable, []

    def listed(*arguments, **named):
        try:
            return real(*arguments, **named)
        except DeltaError as error:
            failed.append(str(error))
            hidden.rename(entry)
            raise

    entry.rename(hidden)
    monkeypatch.setattr(deltalake, "DeltaTable", listed)
    assert support.values(lake.read()) == [0, 1, 2, 3]
    assert len(failed) == 1
    monkeypatch.undo()
    entry.rename(hidden)
    with pytest.raises(CorruptTable, match="the Delta log can't be read"):
        lake.read()


def test_a_panic_of_delta_rs_in_a_forked_process_is_an_error(lake, support):
    lake.create()
    program = f"""
        import os, sys
        from laketier.spi import CommitError, Passthrough
        from laketier_delta.engine import open_table
        from laketier_delta.location import Location
        here = Location({lake.uri!r}, Passthrough())
        open_table(here)
        child = os.fork()
        if child == 0:
            try:
                open_table(here)
            except CommitError as error:
                os._exit(17 if "spawn" in str(error) else 18)
            except BaseException:
                os._exit(19)
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert done.returncode == 17, done.stderr.decode()


def test_four_processes_lose_and_double_nothing(lake, support):
    lake.create()
    epochs = 10
    here = Path(__file__).parent
    command = [sys.executable, str(here / "delta_driver.py"), str(here / "conftest.py"), lake.warehouse]
    drivers = [
        subprocess.Popen([*command, pipeline, str(epochs)], stdout=subprocess.PIPE, text=True)
        for pipeline in ("p", "p", "q", "q")
    ]
    outputs = [driver.communicate()[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0, 0, 0]
    assert sum(map(int, outputs)) == 2 * epochs
    assert lake.table.snapshot_id == 2 * epochs
    expected = sorted([epoch for epoch in range(epochs) if epoch % 5 != 4] * 2)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == expected


def _with_info(lake, version, info):
    """The commit's ``commitInfo`` is this, as some writer may have it."""
    entry = log_entry(lake, version)
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    kept = [action for action in actions if "commitInfo" not in action]
    entry.write_text("\n".join(json.dumps(action) for action in [{"commitInfo": info}, *kept]) + "\n")


@pytest.mark.parametrize("info", [7, "text", ["x"]])
def test_a_commit_info_that_is_no_object_is_damage(lake, info):
    lake.create()
    lake.epoch(0)
    foreign_append(lake, 7)
    _with_info(lake, 2, info)
    with pytest.raises(CorruptTable, match="is not a log entry"):
        lake.storage.history(lake.table).snapshots(9)
    with pytest.raises(CorruptTable, match="is not a log entry"):
        lake.read(as_of=1 << 50)


@pytest.mark.parametrize(
    "info",
    [
        None,
        {"operationMetrics": 7, "operationParameters": 7, "timestamp": "x"},
        {"operationMetrics": {"numOutputRows": "x"}, "operationParameters": ["x"], "operation": "RESTORE"},
        {"operationMetrics": "[", "operationParameters": None, "operation": "WRITE", "timestamp": None},
        {"operationMetrics": '{"numOutputRows": Infinity}'},
    ],
)
def test_a_commit_info_that_tells_nothing_is_none(lake, info):
    """Each writer says there what it likes, so values of another kind are as good as none."""
    lake.create()
    lake.epoch(0)
    foreign_append(lake, 7)
    _with_info(lake, 2, info)
    newest, _, _ = lake.storage.history(lake.table).snapshots(9)
    assert (newest.snapshot_id, newest.rows, newest.committed_at) == (2, None, None)
    moment = 1 << 50
    assert sorted(lake.read(as_of=moment)["id"].to_pylist()) == [0]


def test_a_table_that_was_never_reset_says_so_in_its_newest_entry(lake, support):
    """delta-rs reads the whole log back for a transaction that is nowhere, at each look. And an epoch stays refused
    that a reset took back."""
    lake.create()
    lake.epoch(0)
    assert DeltaTable(lake.uri).transaction_version("laketier/reset") == 0
    assert lake.committer().open().watermark("p").token.epoch == 0
    lake.epoch(1)
    DeltaTable(lake.uri).restore(1)
    lake.epoch(0, pipeline="q")
    assert DeltaTable(lake.uri).transaction_version("laketier/reset") == 3
    with pytest.raises(RolledBack):
        lake.committer().open().watermark("p")


def test_a_record_of_an_unknown_version_is_taken_for_what_it_says(lake, support):
    """As other builds may leave it: it names no version, so no reset is behind it."""
    lake.create()
    lake.epoch(0)
    state = lake.committer().open()
    pointer = state.records.put(support.watermark(0))
    transactions = [Transaction(f"laketier/{name}/p", number, 1) for name, number in (("epoch", 0), ("fence", 0))]
    properties = CommitProperties(app_transactions=[*transactions, Transaction("laketier/record/p", pointer, 1)])
    handle = DeltaTable(lake.uri)
    handle.create_write_transaction([], "append", handle.schema(), [], commit_properties=properties)
    found = lake.committer().open().watermark("p")
    assert (found.token.epoch, found.snapshot_id) == (0, None)


@pytest.mark.parametrize("said", [(1, 0), (0, 1)], ids=["epoch", "fence"])
def test_a_record_of_another_epoch_or_fence_is_damage(lake, support, said):
    lake.create()
    pointer = lake.committer().open().records.put(support.watermark(0))
    transactions = [
        Transaction(f"laketier/{name}/p", number, 1) for name, number in zip(("epoch", "fence"), said, strict=True)
    ]
    properties = CommitProperties(app_transactions=[*transactions, Transaction("laketier/record/p", pointer, 1)])
    handle = DeltaTable(lake.uri)
    handle.create_write_transaction([], "append", handle.schema(), [], commit_properties=properties)
    with pytest.raises(CorruptTable, match="and its record says epoch 0, fence 0"):
        lake.committer().open().watermark("p")


def test_a_state_that_is_not_of_this_format_is_an_error_of_the_caller(lake, support):
    lake.create()
    with pytest.raises(TypeError, match=r"publish needs the state that open\(\) returned, not object"):
        lake.committer().publish(object(), [], support.watermark(0))
    assert lake.table.snapshot_id == 0
