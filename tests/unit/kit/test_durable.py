from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from laketier.kit.durable import create_exclusively, fsync_published, make_directories


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    create_exclusively(tmp_path / "1", b"first")
    with pytest.raises(FileExistsError):
        create_exclusively(tmp_path / "1", b"second")
    assert [path.name for path in tmp_path.iterdir()] == ["1"], "no temporary file stays"
    assert (tmp_path / "1").read_bytes() == b"first"


def test_a_new_folder_is_durable_in_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    make_directories(tmp_path / "a" / "b")
    assert synced[-2:] == [str(tmp_path), str(tmp_path / "a")]


def test_one_of_many_wins(tmp_path: Path) -> None:
    def attempt(number: int) -> bool:
        try:
            create_exclusively(tmp_path / "n", str(number).encode())
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(32)))
    assert won.count(True) == 1
    assert (tmp_path / "n").read_text() == str(won.index(True))


def test_directories_are_made_once(tmp_path: Path) -> None:
    for _ in range(2):
        make_directories(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_a_published_file_is_written_again_when_its_sync_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error the kernel takes pages for written: only what is written anew is synced by the next try."""
    path = tmp_path / "entry"
    path.write_bytes(b"bytes")
    before = path.stat().st_mtime_ns
    os.utime(path, ns=(0, 0))
    fsync, failures = os.fsync, [OSError(errno.EIO, "Input/output error")]

    def fails_once(descriptor: int) -> None:
        if failures:
            raise failures.pop()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fails_once)
    fsync_published(path)
    assert path.read_bytes() == b"bytes"
    assert path.stat().st_mtime_ns >= before, "it was written again"


def test_a_folder_is_made_before_its_name_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[bool] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(tmp_path):
            there.append((tmp_path / "a").is_dir())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    make_directories(tmp_path / "a")
    assert there == [True]


def test_a_file_that_can_not_be_begun_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not as one that could not be tidied up."""

    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("builtins.open", fails)
    with pytest.raises(OSError, match="no space"):
        create_exclusively(tmp_path / "n", b"four")
