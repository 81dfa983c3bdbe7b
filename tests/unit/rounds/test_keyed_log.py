"""A log whose primary key its user names."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from changes import CHANGES, ChangeLog
from laketier.registry import open_log_source
from laketier.rounds.keyed import KeyedLog
from laketier.spi import BadRecord, ConfigError, LaketierError, LogOffsets, LogRange, LogSplit
from laketier_verification.lines import LinesTable


def test_it_reads_what_the_log_reads_and_says_what_the_user_said() -> None:
    log = ChangeLog.of().without(primary_key=(), change_column=None)
    log.append(("+I", 1, "a"), ("-D", 1, ""))
    keyed: KeyedLog = pickle.loads(pickle.dumps(KeyedLog.of(log, ("id",), "op")))  # noqa: S301 - our own bytes
    assert (keyed.table.primary_key, keyed.table.change_column) == (("id",), "op")
    assert keyed.bounds() == log.bounds()
    wanted = LogRange(LogOffsets({"0": 0}), LogOffsets({"0": 2}))
    for _ in range(2):  # a task that failed is read once more
        [batch] = [batch for split in keyed.plan(wanted) for batch in keyed.read(split)]
        assert batch.column("op").to_pylist() == ["+I", "-D"]


def test_without_a_key_the_change_types_are_a_column_like_any_other() -> None:
    table = KeyedLog.of(ChangeLog.of(), (), None).table
    assert (table.primary_key, table.change_column) == ((), None)
    assert table.schema == CHANGES


def test_what_the_source_says_stays_where_the_user_says_nothing() -> None:
    table = KeyedLog.of(ChangeLog.of(), ("name",), None).table
    assert (table.primary_key, table.change_column) == (("name",), "op")


def test_what_does_not_fit_is_told() -> None:
    log = ChangeLog.of().without(primary_key=(), change_column=None)
    with pytest.raises(ConfigError, match="change-column = 'kind' is no column of the log"):
        KeyedLog.of(log, ("id",), "kind")
    with pytest.raises(ConfigError, match="change-column = 'op' needs a primary key"):
        KeyedLog.of(log, None, "op")
    with pytest.raises(ConfigError, match="the primary key has no column 'op'"):
        KeyedLog.of(log, ("op",), "op")
    with pytest.raises(ConfigError, match="the primary key has no column 'x'"):
        KeyedLog.of(log, ("x",), None)


def test_a_bad_record_and_the_columns_are_the_logs_business() -> None:
    log = ChangeLog.of().without(primary_key=(), change_column=None)
    log.append(("+I", 1, "a"), ("bad", 2, ""))
    keyed = KeyedLog.of(log, ("id",), "op")
    split = LogSplit(bucket="0", start=0, end=2)
    told: list[int] = []
    assert len(list(keyed.read(split, on_bad_record=lambda record: told.append(record.offset)))) == 1
    assert told == [1]
    with pytest.raises(LaketierError):
        list(keyed.read(split))
    log.append(("+I", 3, "b"))
    [batch] = keyed.read(LogSplit(bucket="0", start=2, end=3))
    assert batch["id"].to_pylist() == [3]


def test_a_key_that_does_not_fit_says_of_which_log() -> None:
    with pytest.raises(ConfigError, match=r"^t: the primary key has no column 'x'"):
        KeyedLog.of(ChangeLog.of(), ("x",), None)


def test_it_reads_columns_decodes_and_closes_as_the_log_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = LinesTable(tmp_path, "t").create()
    source.append(1)
    source.append_raw("poison")
    log = open_log_source("lines", {"path": str(tmp_path)}, name="lines", origin="the test").open("t")
    keyed = KeyedLog.of(log, ("id",), None)
    taken: list[BadRecord] = []
    [split] = keyed.plan(LogRange(LogOffsets({"0": 0}), LogOffsets({"0": 2})))
    [batch] = keyed.read(split, columns=["text"], on_bad_record=taken.append)
    assert (batch.schema.names, [record.offset for record in taken]) == (["text"], [1])
    again: list[BadRecord] = []
    assert list(keyed.decode(taken, on_bad_record=again.append)) == []
    assert [record.value for record in again] == [b"poison"]
    with pytest.raises(LaketierError):
        list(keyed.decode(taken))
    closed: list[object] = []
    monkeypatch.setattr(type(log), "close", lambda self: closed.append(self))
    keyed.close()
    assert closed == [log]
