"""One move of a data file: what it finds in its way, and what the file system answers."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from laketier.kit import LocalFolder
from laketier.spi import CommitError, CorruptTable
from laketier_localfile.settle import _link

STAGED, FINAL = "__in_progress/a.parquet", "a.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    (tmp_path / "__in_progress").mkdir()
    (tmp_path / STAGED).write_text("rows")
    return LocalFolder(tmp_path)


def test_a_file_gets_its_second_name(folder: LocalFolder) -> None:
    assert _link(folder, STAGED, FINAL) is True
    assert os.path.samefile(folder.root / STAGED, folder.root / FINAL)


def test_who_comes_second_finds_it_linked(folder: LocalFolder) -> None:
    """A driver was killed between the link and the removal of the staged name."""
    _link(folder, STAGED, FINAL)
    assert _link(folder, STAGED, FINAL) is True


def test_a_file_that_has_moved_is_no_link(folder: LocalFolder) -> None:
    os.rename(folder.root / STAGED, folder.root / FINAL)
    assert _link(folder, STAGED, FINAL) is False
    os.unlink(folder.root / FINAL)
    assert _link(folder, STAGED, FINAL) is False


def test_each_file_is_looked_at_anew(folder: LocalFolder) -> None:
    (folder.root / "__in_progress/b.parquet").write_text("more")
    assert _link(folder, "__in_progress/c.parquet", "c.parquet") is False
    assert _link(folder, "__in_progress/b.parquet", "b.parquet") is True
    assert (folder.root / "b.parquet").read_text() == "more"


def test_a_stranger_in_its_place_is_left_alone(folder: LocalFolder) -> None:
    (folder.root / FINAL).write_text("theirs")
    with pytest.raises(CorruptTable, match="another file has the name") as told:
        _link(folder, STAGED, FINAL)
    assert told.value.where == str(folder.root / FINAL)
    assert str(folder.root / STAGED) in told.value.why
    assert (folder.root / FINAL).read_text() == "theirs"
    assert (folder.root / STAGED).read_text() == "rows"


def test_another_driver_moves_it_while_it_is_looked_at(folder: LocalFolder) -> None:
    """The link says that the name is there; then the staged one is gone."""

    class Overtaken(LocalFolder):
        def link(self, source: str, target: str) -> None:
            os.rename(self.root / source, self.root / target)
            raise FileExistsError(errno.EEXIST, "it is there")

    assert _link(Overtaken(folder.root), STAGED, FINAL) is False


def test_the_name_in_its_way_goes_while_it_is_looked_at(folder: LocalFolder) -> None:
    class Crossed(LocalFolder):
        def link(self, source: str, target: str) -> None:
            raise FileExistsError(errno.EEXIST, "it is there")

    with pytest.raises(CorruptTable):
        _link(Crossed(folder.root), STAGED, FINAL)


@pytest.mark.parametrize(
    ("number", "raised"), [(errno.EXDEV, CommitError), (errno.EACCES, PermissionError), (errno.EIO, OSError)]
)
def test_the_file_system_refuses(folder: LocalFolder, number: int, raised: Any) -> None:
    """The commit has landed all the same, and an error of the disk keeps its own name."""

    class Refusing(LocalFolder):
        def link(self, source: str, target: str) -> None:
            raise OSError(number, os.strerror(number))

    with pytest.raises(raised) as told:
        _link(Refusing(folder.root), STAGED, FINAL)
    assert (type(told.value) is CommitError) == (number == errno.EXDEV)
    cause = told.value.__cause__ if number == errno.EXDEV else told.value
    assert isinstance(cause, OSError)
    assert cause.errno == number
