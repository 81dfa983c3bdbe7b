"""A log whose primary key its user names."""

from __future__ import annotations

import pickle

import pytest

from changes import CHANGES, ChangeLog
from laketier.rounds.keyed import KeyedLog
from laketier.spi import ConfigError, LogOffsets, LogRange


def test_it_reads_what_the_log_reads_and_says_what_the_user_said() -> None:
    log = ChangeLog.of().without(primary_key=(), change_column=None)
    log.append(("+I", 1, "a"), ("-D", 1, ""))
    keyed: KeyedLog = pickle.loads(pickle.dumps(KeyedLog.of(log, ("id",), "op")))  # noqa: S301 - our own bytes
    assert (keyed.table.primary_key, keyed.table.change_column) == (("id",), "op")
    assert keyed.bounds() == log.bounds()
    wanted = LogRange(LogOffsets({"0": 0}), LogOffsets({"0": 2}))
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
