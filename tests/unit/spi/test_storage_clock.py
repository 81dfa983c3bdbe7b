"""The clock that dates the files of a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from laketier.spi import StorageError
from laketier.spi.clocks import time_of_storage


def _below(folder: Path) -> pafs.SubTreeFileSystem:
    """A file system that is not the local one, as those of object stores."""
    return pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem())


def test_a_local_folder_is_asked_without_a_name(tmp_path: Path) -> None:
    before = time.time_ns() // 1_000_000
    now = time_of_storage(pafs.LocalFileSystem(), str(tmp_path))
    assert before - 1_000 <= now <= time.time_ns() // 1_000_000 + 1_000
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="nothing"):
        time_of_storage(pafs.LocalFileSystem(), str(tmp_path / "nothing"))


@pytest.mark.parametrize("root", ["lake", "lake/"])
def test_another_storage_dates_a_file_that_is_deleted_again(tmp_path: Path, root: str) -> None:
    (tmp_path / "lake" / "_laketier").mkdir(parents=True)
    before = time.time_ns() // 1_000_000
    for _ in range(2):
        now = time_of_storage(_below(tmp_path), root)
        assert before - 1_000 <= now <= time.time_ns() // 1_000_000 + 1_000
    assert [path.name for path in (tmp_path / "lake").rglob("*")] == ["_laketier"]


def test_each_question_is_answered_anew(tmp_path: Path) -> None:
    (tmp_path / "_laketier").mkdir()
    storage = _below(tmp_path)
    first = time_of_storage(storage, "")
    while time.time_ns() // 1_000_000 <= first + 20:
        pass
    assert time_of_storage(storage, "") > first


class _Shared(pafs.FileSystemHandler):
    """A folder, of whose files somebody else decides what is seen."""

    def __init__(self, folder: Path, seen: Callable[[pafs.FileInfo], pafs.FileInfo]) -> None:
        self.inner, self.seen = _below(folder), seen

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [self.seen(self.inner.get_file_info(path)) for path in paths]

    def delete_file(self, path: str) -> None:
        self.inner.delete_file(path)

    def open_output_stream(self, path: str, metadata: object) -> object:
        return self.inner.open_output_stream(path)

    def get_type_name(self) -> str:
        return "shared"

    def normalize_path(self, path: str) -> str:
        return path

    def _none(self, *_: object) -> None:
        raise NotImplementedError

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _none
    delete_root_dir_contents = move = copy_file = open_input_stream = open_input_file = open_append_stream = _none


@pytest.mark.parametrize("left", [0, 1])
def test_a_file_that_others_delete_is_written_again(tmp_path: Path, left: int) -> None:
    """Another process asks at the same time. Three times in a row it is told."""
    (tmp_path / "_laketier").mkdir()
    probe = tmp_path / "_laketier" / "clock"
    deleted = []

    def seen(info: pafs.FileInfo) -> pafs.FileInfo:
        if len(deleted) < 3 - left:
            os.unlink(probe)
            deleted.append(probe)
            return pafs.FileInfo(info.path, pafs.FileType.NotFound)
        return info

    storage = pafs.PyFileSystem(_Shared(tmp_path, seen))
    if left:
        assert time_of_storage(storage, "") > 0
        return
    with pytest.raises(StorageError, match="_laketier/clock: the storage could not be asked for the time"):
        time_of_storage(storage, "")


@pytest.mark.parametrize(
    "odd",
    [
        lambda path: pafs.FileInfo(path, pafs.FileType.File),
        lambda path: pafs.FileInfo(path, pafs.FileType.Directory, mtime_ns=1),
        lambda path: pafs.FileInfo(path, pafs.FileType.NotFound, mtime_ns=1),
    ],
    ids=["without a date", "a folder", "not there"],
)
def test_only_a_file_with_a_date_tells_the_time(tmp_path: Path, odd: Callable[[str], pafs.FileInfo]) -> None:
    (tmp_path / "_laketier").mkdir()
    with pytest.raises(StorageError, match="could not be asked for the time"):
        time_of_storage(pafs.PyFileSystem(_Shared(tmp_path, lambda info: odd(info.path))), "")
