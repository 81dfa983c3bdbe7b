"""Versions whose entries of the log were cleaned up: gone, and not damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from laketier.spi import CorruptTable, OffsetsExpired, SnapshotNotFound, TableNotFound
from laketier_delta.delta_log import DeltaLog


def _entries(lake: Any) -> list[Path]:
    return [Path(lake.uri, "_delta_log", f"{number:020}.json") for number in range(4)]


@pytest.fixture
def filled(lake: Any) -> Any:
    lake.create(delta__enableChangeDataFeed="true")
    for epoch in range(3):
        lake.epoch(epoch)
    return lake


def test_a_damaged_version_is_damage(filled: Any) -> None:
    _entries(filled)[1].write_bytes(b"{no JSON")
    with pytest.raises(CorruptTable):
        filled.read(snapshot_id=1)


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_version_of_which_the_log_lacks_entries_is_gone(filled: Any, gone: int) -> None:
    """Also one of which nothing is left: delta-rs finds no table then."""
    moment = next(each["timestamp"] for each in DeltaTable(filled.uri).history() if each["version"] == 1)
    DeltaTable(filled.uri).create_checkpoint()
    for entry in _entries(filled)[:gone]:
        entry.unlink()
    for version in range(3):
        with pytest.raises(SnapshotNotFound, match=f"version {version} can't be read"):
            filled.read(snapshot_id=version)
    with pytest.raises(SnapshotNotFound, match="version 1 can't be read" if gone == 1 else "no version is as old"):
        filled.read(as_of=moment)
    for begin in range(3):
        with pytest.raises(OffsetsExpired):
            filled.storage.feed(filled.table).plan(begin, 4)
    assert sorted(filled.read()["id"].to_pylist()) == sorted(filled.read(snapshot_id=3)["id"].to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize("again", [False, True])
def test_a_table_that_is_dropped_beside_a_look_at_its_log_is_not_found(
    filled: Any, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that is made anew then tells of itself."""
    _drop_before_the_next_entry(filled, monkeypatch, again=again)
    history = filled.storage.history(filled.table)
    if again:
        assert [each.snapshot_id for each in history.snapshots(9)] == [0]
        return
    with pytest.raises(TableNotFound):
        history.snapshots(9)


def test_a_moment_of_a_table_that_is_dropped_beside_the_look_is_not_found(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _drop_before_the_next_entry(filled, monkeypatch)
    with pytest.raises(TableNotFound):
        filled.read(as_of=2**40)


def _drop_before_the_next_entry(lake: Any, monkeypatch: pytest.MonkeyPatch, *, again: bool = False) -> None:
    looked_at, drops = DeltaLog.commit_info, [True]

    def dropped_before(log: DeltaLog, version: int) -> Any:
        if drops:
            drops.clear()
            lake.storage.catalog().drop_table(lake.table.path)
            if again:
                lake.create()
        return looked_at(log, version)

    monkeypatch.setattr(DeltaLog, "commit_info", dropped_before)


@pytest.mark.parametrize("gone", [3, 4])
def test_the_history_ends_where_the_log_was_cleaned_up(filled: Any, gone: int) -> None:
    DeltaTable(filled.uri).create_checkpoint()
    for entry in _entries(filled)[:gone]:
        entry.unlink()
    told = [each.snapshot_id for each in filled.storage.history(filled.table).snapshots(9)]
    assert told == [3][: 4 - gone]
