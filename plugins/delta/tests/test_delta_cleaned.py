"""Versions whose entries of the log were cleaned up: gone, and not damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from laketier.spi import CorruptTable, OffsetsExpired, SnapshotNotFound


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
