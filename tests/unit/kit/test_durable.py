from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
