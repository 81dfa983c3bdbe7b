"""Looks at names: there, absent, or nobody knows."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laketier.kit.durable import make_directories
from laketier.kit.file_identity import file_identity
from laketier.kit.looks import below, is_absent, is_file, is_folder, is_link, is_there, names_in
from laketier.spi import StorageError
from text_lake import PATH, Lake

LOOP = os.strerror(errno.ELOOP)


def loop_at(path: Path) -> Path:
    """A name that nobody can look at, not even root: it leads to itself. `Path.exists` says that it is not there."""
    path.symlink_to(path.name)
    return path


def test_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    (dangling := tmp_path / "dangling").symlink_to("nowhere")
    (link := tmp_path / "link").symlink_to(tmp_path)
    for path, told in (
        (tmp_path, (True, False, True, False, False)),
        (file, (True, False, False, True, False)),
        (link, (True, False, True, False, True)),
        (dangling, (False, False, False, False, True)),
    ):
        assert (is_there(path), is_absent(path), is_folder(path), is_file(path), is_link(path)) == told, path
    for path in (tmp_path / "none", file / "below"):
        assert (is_there(path), is_absent(path), file_identity(path)) == (False, True, None), path
        assert not any(look(path) for look in (is_folder, is_file, is_link)), path
        assert (names_in(path), list(below(path))[1:]) == ([], []), path


@pytest.mark.parametrize("look", [is_there, is_folder, is_file, names_in])
def test_a_look_that_fails_is_no_absence(tmp_path: Path, look: Any) -> None:
    with pytest.raises(OSError, match="name too long"):
        look(tmp_path / ("x" * 300))
    with pytest.raises(OSError, match=LOOP):
        look(loop_at(tmp_path / "loop"))


def test_who_asks_for_an_absence_is_not_told_of_one_that_nobody_saw(tmp_path: Path) -> None:
    unseen = tmp_path / ("x" * 300)
    assert (is_absent(unseen), file_identity(unseen)) == (False, None)
    with pytest.raises(OSError, match="name too long"):
        is_link(unseen)


def test_a_folder_that_can_not_be_walked_is_not_empty(tmp_path: Path) -> None:
    """Its path is longer than the system takes, so `os.walk` would pass over it."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("x" * 250, dir_fd=here)
        above, here = here, os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(here)
    assert len(list(os.walk(tmp_path))) < 20
    with pytest.raises(OSError, match="name too long"):
        list(below(tmp_path))


def test_folders_are_not_made_where_nobody_could_look(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=LOOP):
        make_directories(loop_at(tmp_path / "loop") / "below")


def test_a_table_that_can_not_be_looked_at_is_not_left_out_of_a_list(tmp_path: Path) -> None:
    catalog = Lake(tmp_path).catalog
    loop_at(tmp_path / "lost+found")
    (tmp_path / "db" / "no table").mkdir()
    assert catalog.list_tables() == [PATH], "what has no table's name is nobody's to look at"
    assert catalog.list_tables("none") == []
    loop_at(tmp_path / "db" / "unseen")
    with pytest.raises(StorageError, match="tables were listed"):
        catalog.list_tables()


def test_a_disk_that_dates_to_the_second_has_files_told_apart_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was replaced within the second, in the inode of the other, and is as large."""
    second, look = 1_000_000_000, os.stat

    def coarse(path: Path, **how: Any) -> Any:
        found = look(path, **how)
        names = ("st_dev", "st_ino", "st_size", "st_mode")
        dates = dict.fromkeys(("st_mtime_ns", "st_ctime_ns"), 7 * second)
        return SimpleNamespace(**{name: getattr(found, name) for name in names}, **dates)

    (file := tmp_path / "file").write_text("aa")
    fine = file_identity(file)
    monkeypatch.setattr("laketier.kit.file_identity.os.stat", coarse)
    first = file_identity(file)
    assert first == file_identity(file) != fine
    file.write_text("bb")
    assert file_identity(file) not in (None, first)
    os.truncate(file, 17 << 20)
    assert file_identity(file) is None
    assert file_identity(tmp_path) is not None
