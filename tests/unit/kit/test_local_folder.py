"""Files below a local folder, beside links that lead out of it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from laketier.kit import LocalFolder
from laketier.spi import OutsideTable
from laketier_conformance.hostile import paths

Act = Callable[[LocalFolder, str], object]

ACTS: dict[str, Act] = {
    "status": LocalFolder.status,
    "refuse links": LocalFolder.refuse_links,
    "open": lambda folder, path: os.close(folder.open(path)),
    "unlink": LocalFolder.unlink,
    "link": lambda folder, path: folder.link(path, "new"),
    "link to": lambda folder, path: folder.link("own", path),
    "make folders": LocalFolder.make_folders,
    "remove": LocalFolder.remove_folder,
    "sync": LocalFolder.sync_folder,
    "list": lambda folder, path: list(folder.files(path)),
}


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    """A folder with a file of its own, beside one that is somebody else's."""
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "elsewhere" / "canary").write_text("theirs")
    root = tmp_path / "table"
    (root / "data").mkdir(parents=True)
    (root / "own").write_text("mine")
    (root / "data" / "own").write_text("mine too")
    return LocalFolder(root)


def all_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every name below a folder, with what would change if anybody touched it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_nlink, status.st_mtime_ns)
    return found


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("data", "../elsewhere", "data/canary"),
        ("data", "../elsewhere", "data/below/new"),
        ("data", ".", "data/own"),
        ("d", "../elsewhere/canary", "d"),
        ("d", "own", "d"),
        ("d", "nowhere", "d"),
        ("data/x", "../../elsewhere", "data/x"),
        ("data/x", "../../elsewhere", "data/x/canary"),
        ("loop", "loop", "loop/x"),
    ],
)
def test_links_are_not_followed(folder: LocalFolder, act: str, link: str, target: str, path: str) -> None:
    here = folder.root / link
    if here.is_dir():
        here.rename(folder.root / "before")
    here.symlink_to(target)
    before = all_of(folder.root.parent)
    if act == "link to" and path == link:
        with pytest.raises(FileExistsError):
            ACTS[act](folder, path)
    else:
        with pytest.raises(OutsideTable, match=path):
            ACTS[act](folder, path)
    assert all_of(folder.root.parent) == before


@pytest.mark.parametrize("act", ACTS)
def test_hostile_paths_are_refused(folder: LocalFolder, act: str) -> None:
    before = all_of(folder.root.parent)
    outside = set(before) - {path for path in before if path.startswith(f"{folder.root}/")}
    refused = 0
    for path in paths(seed=11, count=300):
        if act in ("list", "sync") and path == "":
            continue  # the folder itself
        try:
            ACTS[act](folder, path)
        except OutsideTable:
            refused += 1
        except OSError:
            pass
    assert refused > 200
    now = all_of(folder.root.parent)
    assert {path: now.get(path) for path in outside if path != str(folder.root)} == {
        path: before[path] for path in outside if path != str(folder.root)
    }
    assert not any(path not in before and not path.startswith(f"{folder.root}/") for path in now)


def test_what_is_a_file(folder: LocalFolder) -> None:
    os.mkfifo(folder.root / "pipe")
    assert folder.status("own").st_size == 4  # type: ignore[union-attr]
    assert [folder.status(path) for path in ("data", "pipe", "nothing", "own/x", "nothing/x")] == [None] * 5
    for path in ("pipe", "nothing", "data"):
        with pytest.raises(FileNotFoundError):
            folder.open(path)
    with os.fdopen(folder.open("data/own"), "rb") as file:
        assert file.read() == b"mine too"
    assert sorted((file.path, file.bytes) for file in folder.files()) == [("data/own", 8), ("own", 4)]
    assert list(LocalFolder(folder.root / "nothing").files()) == []


def test_moving_and_deleting(folder: LocalFolder) -> None:
    folder.make_folders("k=1/l=2")
    folder.make_folders("k=1/l=2")
    folder.link("own", "k=1/l=2/own")
    with pytest.raises(FileExistsError):
        folder.link("own", "k=1/l=2/own")
    with pytest.raises(FileNotFoundError):
        folder.link("nothing", "x")
    folder.sync_folder("k=1/l=2")
    assert [folder.unlink("own"), folder.unlink("own"), folder.unlink("nothing/x")] == [True, False, False]
    assert (folder.root / "k=1" / "l=2" / "own").read_text() == "mine"
    with pytest.raises(IsADirectoryError):
        folder.unlink("data")


@pytest.mark.parametrize(
    ("there", "synced"),
    [
        ("", ["", "k=1", "k=1/l=2"]),
        ("k=1", ["", "k=1", "k=1/l=2"]),
        ("k=1/l=2", ["k=1", "k=1/l=2"]),
        ("k=1/l=2/m=3", ["k=1/l=2"]),
    ],
)
def test_new_folders_are_durable_and_so_is_the_last_that_was_there(
    folder: LocalFolder, monkeypatch: pytest.MonkeyPatch, there: str, synced: list[str]
) -> None:
    """Its maker may have been killed before it synced the name."""
    (folder.root / there).mkdir(parents=True, exist_ok=True)
    seen: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        seen.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), folder.root).removeprefix("."))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fsync", fsync)
    folder.make_folders("k=1/l=2/m=3")
    assert seen == synced
    assert len(os.listdir("/proc/self/fd")) == before, "no folder stays open"


def test_a_folder_is_removed_with_what_is_left_of_others_of_its_name(folder: LocalFolder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "theirs").write_text("theirs")
    top = folder.root
    (top / "t" / "deep").mkdir(parents=True)
    (top / "t" / "deep" / "file").write_text("x")
    (top / "t" / "link").symlink_to(other)
    (top / f".dropped-t-{'0' * 32}").mkdir()
    for kept in (f".dropped-t2-{'0' * 32}", ".dropped-t-by-hand", "t2"):
        (top / kept).mkdir()
    before = {path.name for path in top.iterdir()} - {"t", f".dropped-t-{'0' * 32}"}
    folder.remove_folder("t")
    assert {path.name for path in top.iterdir()} == before
    assert (other / "theirs").read_text() == "theirs"
    with pytest.raises(FileNotFoundError):
        folder.remove_folder("t")
    (top / "t").symlink_to(other)
    with pytest.raises(OutsideTable, match="link"):
        folder.remove_folder("t")
    assert (other / "theirs").read_text() == "theirs"


def test_the_folder_itself_may_be_reached_through_a_link(folder: LocalFolder, tmp_path: Path) -> None:
    (tmp_path / "mounted").symlink_to(folder.root)
    assert LocalFolder(tmp_path / "mounted").unlink("data/own")


def test_a_listing_leaves_out_what_it_can_t_name(folder: LocalFolder, caplog: pytest.LogCaptureFixture) -> None:
    (folder.root / "data" / "link").symlink_to("../own")
    os.close(os.open(bytes(folder.root) + b"/data/\xff", os.O_CREAT))
    (folder.root / "data" / "a\\b").touch()
    (folder.root / "data" / "a\nb").touch()
    assert [file.path for file in folder.files("data")] == ["data/own"]
    said = "\n".join(caplog.messages)  # the whole text is in the form that another test may have chosen
    assert [part in said for part in ("data/link", "udcff", "a\\\\b", "a\\nb")] == [True] * 4


def test_a_folder_that_becomes_a_link_meanwhile(folder: LocalFolder) -> None:
    """Whoever swaps them while files are deleted gets nothing of somebody else's deleted: between any two steps."""
    draw = random.Random(5)
    data, aside = folder.root / "data", folder.root / "aside"
    canary = folder.root.parent / "elsewhere" / "own"
    canary.write_text("theirs")
    real = os.open

    def swapping(path: object, flags: int, *more: object, **named: object) -> int:
        found = real(path, flags, *more, **named)  # type: ignore[arg-type]
        if draw.random() < 0.5:
            if data.is_symlink():
                data.unlink()
                aside.rename(data)
            else:
                data.rename(aside)
                data.symlink_to("../elsewhere")
        return found

    for _ in range(40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "open", swapping)
            with suppress(OutsideTable):
                folder.unlink("data/own")
        assert canary.read_text() == "theirs"
        home = aside if data.is_symlink() else data
        (home / "own").write_text("mine")
