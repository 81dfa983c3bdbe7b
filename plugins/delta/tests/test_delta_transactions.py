"""What the newest entries of a log say of transactions, and what they say of the horizon."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from laketier.kit import RecordStore
from laketier.spi import COLLECTOR, Decision, RolledBack, Token, Watermark, WatermarkLost
from laketier.tiering import TieringRound, pipelines
from laketier_delta.delta_log import HORIZON, DeltaLog
from laketier_delta.transactions import _NEAREST, transaction_ids

NONE = (None, None, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What delta-rs was asked for, which reads the whole log then."""
    names: list[str] = []
    look = DeltaTable.transaction_version
    monkeypatch.setattr(DeltaTable, "transaction_version", lambda *of: names.append(of[1]) or look(*of))
    return names


def entry_of(lake, version):
    return f"{lake.uri}/_delta_log/{version:020}.json"


def foreign(lake, *transactions):
    """An ordinary commit of delta-rs."""
    handle = DeltaTable(lake.uri)
    properties = CommitProperties(app_transactions=list(transactions)) if transactions else None
    handle.create_write_transaction([], "append", handle.schema(), [], commit_properties=properties)


def without_horizon(lake, version):
    """As a laketier from before wrote it."""
    with open(entry_of(lake, version), encoding="utf-8") as file:
        actions = [json.loads(line) for line in file]
    assert sum(action.get("commitInfo", {}).pop(HORIZON, None) is not None for action in actions) == 1
    with open(entry_of(lake, version), "w", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(action)}\n" for action in actions))


def horizon_of(lake):
    return lake.committer().open().transactions.numbers_of(COLLECTOR)


def raised(lake, support, epoch):
    committer = lake.committer()
    token = Token(COLLECTOR, "run", epoch, content="1000")
    committer.publish(committer.open(), [], replace(support.watermark(epoch, COLLECTOR), token=token))


def test_a_round_asks_the_newest_entries(lake, support, asked):
    """Also of several pipelines in turn, with commits of others between."""
    lake.create()
    lake.epoch(0)
    committer = lake.committer()
    committer.publish(committer.open(), [], support.watermark(0, "q"))
    asked.clear()
    for epoch in range(1, 4):
        lake.epoch(epoch)
        assert lake.committer().open().watermark("q").token.epoch == epoch - 1
        foreign(lake)
        committer.publish(committer.open(), [], support.watermark(epoch, "q"))
        assert lake.committer().open().watermark(COLLECTOR) is None
    assert asked == []


def test_an_entry_is_read_once_a_look(lake, support, monkeypatch):
    lake.create()
    lake.epoch(0)
    state = lake.committer().open()
    read: list[int] = []
    entry = DeltaLog.entry
    monkeypatch.setattr(DeltaLog, "entry", lambda log, version: read.append(version) or entry(log, version))
    assert [state.watermark(pipeline) is None for pipeline in ("p", "q", "r", "p")] == [False, True, True, False]
    assert read == [0], "the newest one was read as the state was opened"


def test_an_idle_pipeline_is_found_behind_many_commits(lake, support, asked):
    lake.create()
    committer = lake.committer()
    committer.publish(committer.open(), [], support.watermark(7, "idle"))
    for epoch in range(_NEAREST + 2):
        lake.epoch(epoch)
    state = lake.committer().open()
    asked.clear()
    assert [state.watermark("idle").token.epoch for _ in range(2)] == [7, 7]
    assert len(asked) == 3, "once for each of its names"
    assert state.watermark("nobody") is state.watermark("nobody") is None
    assert len(asked) == 4


def test_the_horizon_is_told_by_each_commit(lake, support, asked):
    lake.create()
    lake.epoch(0)
    raised(lake, support, 0)
    told = horizon_of(lake)
    assert None not in told
    for epoch in range(1, 3 * _NEAREST):
        lake.epoch(epoch)
    asked.clear()
    assert horizon_of(lake) == told
    assert asked == []
    names = transaction_ids(COLLECTOR)
    assert told == tuple(DeltaTable(lake.uri).transaction_version(name) for name in names)
    raised(lake, support, 1)
    lake.epoch(3 * _NEAREST)
    assert horizon_of(lake)[0] == 1


@pytest.mark.parametrize("later", [0, 1, _NEAREST, _NEAREST + 2])
def test_a_release_from_before_raised_the_horizon(lake, support, later):
    """It says nothing of it; its transaction is newer than what was said before."""
    lake.create()
    lake.epoch(0)
    raised(lake, support, 0)
    lake.epoch(1)
    raised(lake, support, 1)
    without_horizon(lake, 4)
    for epoch in range(2, 2 + later):
        lake.epoch(epoch)
        without_horizon(lake, 3 + epoch)
    assert horizon_of(lake)[0] == 1
    lake.epoch(2 + later)
    assert horizon_of(lake)[0] == 1


@pytest.mark.parametrize("text", ["", "[1, 2]", "[1, 2, null]", '{"a": 1}', "[true, 1, 1]", "7"])
def test_what_no_writer_of_ours_says_is_not_taken(lake, support, text):
    lake.create()
    lake.epoch(0)
    raised(lake, support, 0)
    told = horizon_of(lake)
    lake.epoch(1)
    with open(entry_of(lake, 3), encoding="utf-8") as file:
        actions = [json.loads(line) for line in file]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"][HORIZON] = text
    with open(entry_of(lake, 3), "w", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(action)}\n" for action in actions))
    assert horizon_of(lake) == told


def test_a_table_that_forgets_transactions_says_nothing(lake_with, support):
    """What is expired, only delta-rs knows."""
    lake = lake_with(accept_transaction_retention=True)
    lake.create(delta__setTransactionRetentionDuration="interval 1 days")
    foreign(lake, *(Transaction(name, 3, 1) for name in transaction_ids("p")))
    with pytest.raises(WatermarkLost):
        lake.epoch(4)
    lake.epoch(0)
    assert horizon_of(lake) == NONE
    with open(entry_of(lake, 2), encoding="utf-8") as file:
        assert HORIZON not in file.read()


def set_for_a_while(lake, *, cleaned_up):
    """Somebody sets a retention of transactions, a checkpoint leaves ours out, and the property is unset, which
    delta-rs has no call for: Spark's entry of it, by hand."""
    lasting = {"delta.setTransactionRetentionDuration": "interval 0 seconds"}
    if cleaned_up:
        lasting["delta.logRetentionDuration"] = "interval 0 seconds"
    DeltaTable(lake.uri).alter.set_table_properties(lasting)
    handle = DeltaTable(lake.uri)
    handle.create_checkpoint()
    if cleaned_up:
        handle.cleanup_metadata()
    metadata = handle.metadata()
    action = {
        "id": str(metadata.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": handle.schema().to_json(),
        "partitionColumns": [],
        "configuration": {key: value for key, value in metadata.configuration.items() if key not in lasting},
        "createdTime": metadata.created_time,
    }
    with open(entry_of(lake, handle.version() + 1), "w", encoding="utf-8") as file:
        file.write(json.dumps({"metaData": action}) + "\n")


@pytest.mark.parametrize("cleaned_up", [True, False])
def test_a_pipeline_that_a_checkpoint_forgot_is_not_loaded_again(lake, support, cleaned_up):
    """A log is read from its start, as the first epoch, where the table says nothing of the pipeline."""
    lake.create()
    lake.epoch(0)
    lake.epoch(1)
    for _ in range(_NEAREST):  # whose entries would tell
        foreign(lake)
    set_for_a_while(lake, cleaned_up=cleaned_up)
    assert DeltaTable(lake.uri).transaction_version("laketier/record/p") is None, "delta-rs forgot it"
    for epoch in (0, 2):
        told = "epoch 1, which was to be version 2, is in the table can't" if cleaned_up else "epoch 1 is version 2"
        with pytest.raises(RolledBack, match=told):
            lake.epoch(epoch)
    kept = [file.path for file in lake.storage.maintenance(lake.table).orphans(2**62) if file.kind == "record"]
    assert kept == [], "they tell of the pipeline"
    lake.epoch(0, support.ids(7), pipeline="new")
    pipelines.adopt(lake.factory(), "p", run="run", epoch=1)
    lake.epoch(2)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [0, 1, 2, 7]


def test_a_first_round_of_which_no_entry_tells_names_the_way_out(lake, support):
    """It never landed, and others cleaned up the entry that would say so."""
    lake.create()
    for _ in range(2):
        foreign(lake)
    RecordStore(lake.committer()._log.filesystem, lake.uri).put(replace(watermark_of(), snapshot_id=1))
    DeltaTable(lake.uri).create_checkpoint()
    Path(entry_of(lake, 1)).unlink()
    with pytest.raises(
        RolledBack, match=r"the round never landed, or .* as the round never landed, run `laketier pipeline forget"
    ):
        lake.epoch(0)
    pipelines.forget(lake.factory(), "p")
    lake.epoch(0)


@pytest.mark.parametrize("way_out", ["adopt", "forget"])
def test_the_way_out_of_a_lost_record_is_the_one_that_the_refusal_names(lake, way_out):
    """Somebody deleted what they did not know. The watermark can't be read again, whatever anybody does."""
    lake.create()
    lake.epoch(0)
    shutil.rmtree(f"{lake.uri}/_laketier")
    with pytest.raises(RolledBack, match=r"was at epoch 0.*laketier pipeline adopt.*laketier pipeline forget"):
        lake.epoch(1)
    if way_out == "adopt":
        pipelines.adopt(lake.factory(), "p", run="run", epoch=0)
    else:
        pipelines.forget(lake.factory(), "p")
    lake.epoch(1 if way_out == "adopt" else 0)


def test_a_pipeline_whose_first_round_never_landed_is_a_new_one(lake):
    """Each attempt leaves a record, and the versions that they were meant for are others' or not there."""
    lake.create()
    foreign(lake)
    for version in (1, 2, 3):
        record = replace(watermark_of(), snapshot_id=version)
        RecordStore(lake.committer()._log.filesystem, lake.uri).put(record)
    assert TieringRound(lake.factory(), token=Token("p", "run", 0)).begin() is Decision.PROCEED
    with pytest.raises(WatermarkLost):
        lake.epoch(1)


def watermark_of() -> Watermark:
    return Watermark(Token("p", "run", 0), "c")
