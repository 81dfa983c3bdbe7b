"""Epochs from one process: what is read, staged, kept open and given up, and when the process may keep files open."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import laketier
from laketier.config import LakeConfig
from laketier.registry import configure, open_lake
from laketier.spi import ConfigError, Fenced, OpenFiles, OpenFilesSlot, TokenMismatch
from laketier.tiering import RoundOutcome, open_files, pipelines
from laketier.tiering.epochs import EpochWriter
from laketier.tiering.horizon import raise_horizon
from memory_lake import MemoryFactory, MemoryTable

SCHEMA = pa.schema([("id", pa.int64())])
DAY = 24 * 3600 * 1000


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {
        "lake.format": "localfile",
        "lake.warehouse": str(tmp_path / "lake"),
        "lake.table": "db.t",
        "lake.pipeline": "p",
    }


@pytest.fixture
def kept(config: dict[str, str]) -> dict[str, str]:
    """Files stay open across epochs."""
    return {**config, "lake.localfile.open-files": "true", "lake.localfile.file-format": "json"}


def batch(*ids: int) -> pa.RecordBatch:
    return pa.record_batch({"id": list(ids)}, schema=SCHEMA)


def lake_of(config: dict[str, str]) -> Any:
    return open_lake(configure(config))


def plain_files(config: dict[str, str]) -> list[str]:
    """What readers that are not ours see."""
    folder = Path(config["lake.warehouse"], "db", "t")
    return sorted(path.name for path in folder.glob("*.json"))


def staged(config: dict[str, str]) -> list[str]:
    return sorted(os.listdir(Path(config["lake.warehouse"], "db", "t", "__in_progress")))


def unread() -> Iterator[pa.RecordBatch]:
    raise AssertionError("its rows were read")
    yield


# -- a writer of epochs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"lake.pipeline": None}, {"lake.epoch": "3"}])
def test_a_writer_has_a_pipeline_and_is_given_its_epochs(config: dict[str, str], more: dict[str, str | None]) -> None:
    keys = {key: value for key, value in (config | more).items() if value is not None}
    with pytest.raises(ConfigError, match="a writer of epochs needs lake"):
        laketier.open_writer(keys, SCHEMA)


def test_the_next_epoch_is_that_after_the_last(config: dict[str, str]) -> None:
    writer = laketier.open_writer(config, SCHEMA)
    assert writer.next_epoch == 0
    for epoch in range(3):
        writer.write(epoch, [batch(epoch)])
        assert writer.next_epoch == epoch + 1
    lake = lake_of(config)
    pipelines.forget(lake.tiering_factory(lake.load_table()), "p")
    assert writer.next_epoch == 0, "a pipeline that was forgotten begins anew"
    assert laketier.open_writer({**config, "lake.pipeline": "q"}, SCHEMA).next_epoch == 0


def test_an_epoch_that_is_there_is_not_read_again(config: dict[str, str]) -> None:
    writer = laketier.open_writer(config, SCHEMA)
    writer.write(0, [batch(1, 2)], content="a")
    done = writer.write(0, unread(), content="a")
    assert (done.outcome, done.rows) == (RoundOutcome.ALREADY_THERE, 2)
    with pytest.raises(TokenMismatch):
        writer.write(0, unread(), content="b")
    assert staged(config) == []


def test_a_writer_of_an_older_fence_is_refused(config: dict[str, str]) -> None:
    laketier.open_writer(config, SCHEMA, fence=4).write(0, [batch(1)])
    with pytest.raises(Fenced):
        laketier.open_writer(config, SCHEMA, fence=3).write(1, unread())
    laketier.open_writer(config, SCHEMA, fence=4).write(1, [batch(2)])


def test_what_fails_leaves_nothing_and_the_epoch_can_be_written(
    config: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise KeyError("of the producer")

    closed, distrusted = [], []
    monkeypatch.setattr("laketier.tiering.round.TieringRound.close", lambda tiering: closed.append(tiering))
    monkeypatch.setattr("laketier.tables.metadata.process.distrust", distrusted.append)
    writer = laketier.open_writer(config, SCHEMA)
    with pytest.raises(KeyError, match="of the producer"):
        writer.write(0, fails())
    assert len(closed) == 1
    assert len(distrusted) == 1, "what was kept of the table may be why"
    assert staged(config) == []
    assert writer.write(0, [batch(1)]).outcome is RoundOutcome.PUBLISHED


def test_each_commit_is_told_to_what_is_kept_of_the_table(
    kept: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[LakeConfig] = []
    monkeypatch.setattr("laketier.tiering.epochs.changed", told.append)
    with laketier.open_writer(kept, SCHEMA) as writer:
        assert writer.finish_due() is None
        assert told == []
        writer.write(0, [batch(1)])
        assert [str(each.table) for each in told] == ["db.t"]
    assert len(told) == 2, "the end of its files is a commit, too"


def test_a_horizon_of_a_clock_that_is_ahead_refuses_no_epoch(config: dict[str, str]) -> None:
    """Attempts begin after the table's horizon, whatever this host takes the time to be."""
    writer = laketier.open_writer(config, SCHEMA)
    writer.write(0, [batch(1)])
    lake = lake_of(config)
    table = lake.load_table()
    raise_horizon(lake.tiering_factory(table), table.table_uuid, 2**41 + DAY)
    assert writer.write(1, [batch(2)]).outcome is RoundOutcome.PUBLISHED


# -- files that stay open ----------------------------------------------------------------------------------------------


def test_a_writer_ends_its_files_when_it_ends(kept: dict[str, str]) -> None:
    with laketier.open_writer(kept, SCHEMA) as writer:
        for epoch in range(3):
            writer.write(epoch, [batch(epoch)])
        assert plain_files(kept) == []
        assert writer.finish_due() is None, "nothing is old"
    assert len(plain_files(kept)) == 1
    writer.close()
    assert len(plain_files(kept)) == 1


def test_a_writer_whose_block_raises_gives_its_files_up(kept: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    slots: list[OpenFilesSlot] = []
    close = OpenFilesSlot.close
    monkeypatch.setattr(OpenFilesSlot, "close", lambda slot: (slots.append(slot), close(slot))[1])
    with pytest.raises(KeyError), laketier.open_writer(kept, SCHEMA) as writer:  # noqa: PT012 - what is in the block
        writer.write(0, [batch(1)])
        raise KeyError("of the user")
    assert len(slots) == 1
    assert slots[0].is_empty
    assert plain_files(kept) == []
    with laketier.open_writer(kept, SCHEMA) as other:
        other.write(1, [batch(2)])
    assert len(plain_files(kept)) == 2, "who writes next ends them"


def test_files_that_can_not_be_ended_are_given_up(kept: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    writer = laketier.open_writer(kept, SCHEMA)
    writer.write(0, [batch(1)])

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as full:
        full.setattr("laketier.tiering.epochs.finish_open_files", fails)
        with pytest.raises(OSError, match="full"):
            writer.close()
    assert writer._slot.is_empty
    assert writer.finish_due() is None
    writer.close()


@pytest.mark.parametrize("is_crowded", [True, False])
def test_who_has_many_files_open_leaves_no_more(
    kept: dict[str, str], monkeypatch: pytest.MonkeyPatch, is_crowded: bool
) -> None:
    monkeypatch.setattr("laketier.tiering.epochs.is_crowded", lambda: is_crowded)
    writer = laketier.open_writer(kept, SCHEMA)
    writer.write(0, [batch(1)])
    assert len(plain_files(kept)) == is_crowded
    assert writer._slot.is_empty is is_crowded
    writer.close()


def test_who_has_a_file_open_goes_on_with_it_where_there_are_many(
    kept: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = laketier.open_writer(kept, SCHEMA)
    writer.write(0, [batch(1)])
    monkeypatch.setattr("laketier.tiering.epochs.is_crowded", lambda: True)
    writer.write(1, [batch(2)])
    assert plain_files(kept) == []
    writer.close()
    assert len(plain_files(kept)) == 1


# -- descriptors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "opened", "crowded"),
    [(10, 5, False), (10, 6, True), (11, 5, False), (11, 6, True), (resource.RLIM_INFINITY, 10**6, False)],
)
def test_when_a_process_has_many_files_open(
    monkeypatch: pytest.MonkeyPatch, most: int, opened: int, crowded: bool
) -> None:
    monkeypatch.setattr(open_files.resource, "getrlimit", lambda _: (most, 10**9))
    monkeypatch.setattr(open_files.os, "listdir", lambda _: ["0"] * opened)
    assert open_files.is_crowded() is crowded


def test_a_process_that_can_not_look_has_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: object) -> list[str]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(open_files.resource, "getrlimit", lambda _: (10, 10))
    monkeypatch.setattr(open_files.os, "listdir", none_left)
    assert open_files.is_crowded()


class Opened(OpenFiles):
    """Files of nobody."""

    def __init__(self, *, is_due: bool) -> None:
        self._is_due = is_due

    @property
    def is_due(self) -> bool:
        return self._is_due

    def close(self) -> None: ...


def test_engines_that_keep_nothing_open_refuse_who_asks_for_it(kept: dict[str, str], config: dict[str, str]) -> None:
    EpochWriter(configure(kept), SCHEMA).write(0, [batch(1)])
    asked, other = lake_of(kept), lake_of({**config, "lake.localfile.file-format": "json"})
    with pytest.raises(ConfigError, match="can't stay open across epochs here") as told:
        open_files.refuse_open_files(asked.tiering_factory(asked.load_table()), where="db.t", why="it is Spark")
    assert (told.value.where, told.value.why) == ("db.t", "it is Spark")
    open_files.refuse_open_files(other.tiering_factory(other.load_table()), where="db.t", why="it is Spark")


@pytest.mark.parametrize(
    ("left", "ending", "asks"),
    [(None, False, False), (None, True, False), (False, False, False), (True, False, True), (False, True, True)],
)
def test_files_are_ended_when_they_are_due(
    monkeypatch: pytest.MonkeyPatch, left: bool | None, ending: bool, asks: bool
) -> None:
    table, slot = MemoryTable(), OpenFilesSlot()
    if left is not None:
        slot.leave(Opened(is_due=left))
    contexts: list[Any] = []
    staged: Callable[..., Any] = open_files.write_task

    def task(factory: Any, batches: Any, context: Any) -> bytes:
        contexts.append(context)
        message: bytes = staged(factory, [pa.record_batch([[1], ["x"]], schema=table.schema)], context)
        return message

    monkeypatch.setattr(open_files, "write_task", task)
    done = open_files.finish_open_files(MemoryFactory(table), slot, ending=ending)
    assert (done is not None) is asks
    assert slot.ending is (ending and asks)
    assert [each.open_files for each in contexts] == [slot] * asks
    assert table.rows == [1] * asks
    assert table.watermarks == {}, "it is no epoch"


def test_files_that_somebody_else_ended_are_no_commit() -> None:
    table, slot = MemoryTable(), OpenFilesSlot()
    slot.leave(Opened(is_due=True))
    assert open_files.finish_open_files(MemoryFactory(table), slot, ending=True) is None
    assert table.commits == []
    assert slot.ending
    assert open_files.finish_open_files(MemoryFactory(table), slot, ending=False) is None
    assert slot.ending, "it stays so"
