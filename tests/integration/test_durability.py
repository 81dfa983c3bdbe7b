"""What a round has made is on the device when the round is acknowledged: every file, and every name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laketier_verification.lakes import OURS, append, lake_at, rows_of

# Not needed by the snapshot: made again, or only looked at by people.
NOT_NEEDED = {"localfile": ("head.json",), "delta": ("_last_checkpoint",), "iceberg": (), "lance": (".txn",)}


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.each_format  # each syncs in its own way
@pytest.mark.parametrize("format", OURS)
def test_all_that_a_round_made_is_fsynced(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_at(tmp_path / "lake", format)
    append(lake, rows_of(1, 2), epoch=0)
    before = files_below(tmp_path)
    synced: set[Path] = set()
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", noting)
    append(lake, rows_of(3, 4), epoch=1)
    made = {
        path
        for path in files_below(tmp_path) - before
        if not path.name.endswith(NOT_NEEDED[format]) and ".db" not in path.name
    }
    assert len(made) >= 2, "a data file and what publishes it"
    inodes = {(path.stat().st_dev, path.stat().st_ino) for path in synced if path.exists()}
    staged = {path for path in synced if not path.exists()}
    unsynced = {
        path.relative_to(tmp_path)
        for path in made
        # A file that was moved since was synced under the name that it had.
        if (path.stat().st_dev, path.stat().st_ino) not in inodes and not any(path.stem in gone.name for gone in staged)
    }
    assert not unsynced
    assert {path.parent for path in made} <= synced
