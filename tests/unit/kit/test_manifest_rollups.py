"""Rollups of manifests: derived, and never needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier import spi
from laketier.kit import durable, local_store
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.rollup import blocks_back_from, files_at, find_commit, write_rollups
from text_lake import Lake, following

NAME = "f" * 32 + ".text"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def _names(manifests: ManifestLog) -> set[tuple[int, int]]:
    found = (path.stem.split("-") for path in (manifests.folder / "rollups").iterdir())
    return {(int(first), int(last)) for first, last in found}


def _long(lake: Lake, commits: int) -> ManifestLog:
    """Each commit adds a file. It is not there, which nobody asks here."""
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    for number in range(1, commits):
        entry = FileEntry(f"{number:032x}.text", 1, 2, 0, (), None, {"lines": 1})
        head = manifests.append(following(head, added=(entry,), commit_id=f"c{number}"))
        write_rollups(manifests, number)
    return manifests


def _rollup(manifests: ManifestLog, block: tuple[int, int]) -> Path:
    return manifests.folder / "rollups" / f"{block[0]:020}-{block[1]:020}.json"


def _paths(numbers: range) -> list[str]:
    return [f"{number:032x}.text" for number in numbers]


def test_rollups_sum_up_powers_of_their_base(lake: Lake) -> None:
    manifests = _long(lake, 9)
    assert _names(manifests) == {(0, 1), (2, 3), (4, 5), (6, 7), (0, 3), (4, 7), (0, 7)}
    for first, last in _names(manifests):
        [block] = blocks_back_from(manifests, last, down_to=first)
        assert (block.first, block.last) == (first, last)
        assert [entry.path for entry in block.files] == _paths(range(max(1, first), last + 1))


@pytest.mark.parametrize(
    ("down_to", "number", "expected"),
    [
        (0, 8, [(8, 8), (0, 7)]),
        (0, 6, [(6, 6), (4, 5), (0, 3)]),
        (1, 7, [(4, 7), (2, 3), (1, 1)]),
        (4, 7, [(4, 7)]),
        (5, 7, [(6, 7), (5, 5)]),
        (3, 3, [(3, 3)]),
    ],
)
def test_a_range_is_read_from_as_few_documents_as_there_are(
    lake: Lake, down_to: int, number: int, expected: list[tuple[int, int]]
) -> None:
    manifests = _long(lake, 9)
    blocks = blocks_back_from(manifests, number, down_to=down_to)
    assert [(block.first, block.last) for block in blocks] == expected


@pytest.mark.parametrize("gone", [(0, 7), (0, 3), (4, 5)])
def test_rollups_that_are_gone_or_damaged(lake: Lake, gone: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    manifests = _long(lake, 9)
    expected = [files_at(manifests, number) for number in range(9)]
    path = manifests.folder / "rollups" / f"{gone[0]:020}-{gone[1]:020}.json"
    path.write_bytes(b"damaged")
    assert [files_at(manifests, number) for number in range(9)] == expected
    assert "instead of a damaged rollup" in caplog.text
    path.unlink()
    assert [files_at(manifests, number) for number in range(9)] == expected
    assert [entry.path for entry in expected[8]] == _paths(range(1, 9))


@pytest.mark.parametrize("place", [(0, 7), (0, 3), (4, 7), (4, 5), (6, 7)])
@pytest.mark.parametrize("theirs", [(0, 7), (0, 3), (0, 1), (6, 7), None])
def test_a_rollup_in_another_ones_place_loses_and_adds_no_file(
    lake: Lake,
    tmp_path: Path,
    place: tuple[int, int],
    theirs: tuple[int, int] | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a restore by hand may leave it: each document is whole, and its checksum is right. None: it is that of the
    same manifests of another table."""
    manifests = _long(lake, 9)
    expected = [files_at(manifests, number) for number in range(9)]
    other = _long(Lake(tmp_path / "other"), 9) if theirs is None else manifests
    document = _rollup(other, theirs or place).read_bytes()
    _rollup(manifests, place).write_bytes(document)
    caplog.clear()
    assert [files_at(manifests, number) for number in range(9)] == expected
    assert [files_at(manifests, number, manifests.read(number)) for number in range(9)] == expected
    found = [find_commit(manifests, 8, f"c{number}") for number in range(1, 9)]
    assert [each and each.number for each in found] == list(range(1, 9))
    is_read = place in ((0, 7), (0, 3), (4, 5))
    assert ("a rollup that sums up others" in caplog.text) == (is_read and theirs != place)
    for first, last in ((0, 3), (0, 7)):
        _rollup(manifests, (first, last)).unlink(missing_ok=True)
        write_rollups(manifests, last)
        [block] = blocks_back_from(manifests, last, down_to=first)
        assert (block.first, block.last) == (first, last), "and what is made of it is right, too"
        assert [entry.path for entry in block.files] == _paths(range(1, last + 1))


def test_what_a_newest_manifest_that_is_known_says_is_not_asked_of_another(lake: Lake) -> None:
    """Whoever knows a manifest of another number is answered for the one that was asked for."""
    manifests = _long(lake, 9)
    for number in range(9):
        for known in range(9):
            found = files_at(manifests, number, manifests.read(known))
            assert [entry.path for entry in found] == _paths(range(1, number + 1))


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), spi.StorageError("busy"), MemoryError()])
def test_a_rollup_that_can_not_be_looked_at_is_not_taken_for_one_that_is_gone(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """A store that is busy would be asked for many manifests instead of one rollup."""
    manifests, read = _long(lake, 9), local_store.LocalStore.read

    def fails(store: local_store.LocalStore, path: str) -> bytes:
        if "rollups" in path:
            raise error
        return read(store, path)

    monkeypatch.setattr(local_store.LocalStore, "read", fails)
    with pytest.raises(type(error)):
        files_at(manifests, 8)


def test_a_commit_is_found_wherever_it_is(lake: Lake) -> None:
    manifests = _long(lake, 9)
    for number in range(1, 9):
        found = find_commit(manifests, 8, f"c{number}")
        assert found is not None
        assert (found.number, found.commit_id) == (number, f"c{number}")
    assert find_commit(manifests, 8, "c9") is None
    assert find_commit(manifests, 4, "c5") is None


def test_files_before_an_overwrite_are_not_read(lake: Lake) -> None:
    manifests = _long(lake, 3)
    head = manifests.read(2)
    added = FileEntry(NAME, 1, 2, 0, (), None, {"lines": 1})
    manifests.append(replace(following(head, added=(added,)), kind="overwrite"))
    for path in (manifests.path(0), manifests.path(1), *(manifests.folder / "rollups").iterdir()):
        path.unlink()
    assert [entry.path for entry in files_at(manifests, 3)] == [NAME]


def test_rollups_are_written_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = _long(lake, 8)

    def fails(*_: Any) -> None:
        raise AssertionError("it is there already")

    monkeypatch.setattr(local_store, "create_exclusively", fails)
    write_rollups(manifests, 7)
    (manifests.folder / "rollups" / f"{0:020}-{7:020}.json").unlink()
    with pytest.raises(AssertionError):
        write_rollups(manifests, 7)


@pytest.mark.parametrize(
    ("there", "error"),
    [
        ("ours", FileExistsError("raced")),
        ("theirs", FileExistsError("raced")),
        ("", OSError("full")),
        ("", spi.StorageError("busy")),
    ],
)
def test_a_rollup_that_cannot_be_written_fails_no_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, there: str, error: Exception
) -> None:
    def fails(path: Path, data: bytes) -> None:
        if "rollups" not in path.parts:
            durable.create_exclusively(path, data)
            return
        path.write_bytes(data if there == "ours" else b"theirs")
        raise error

    monkeypatch.setattr(local_store, "create_exclusively", fails)
    lake.round(0, 1)
    assert lake.read() == [1]
    assert ("was not written" in caplog.text) == (there != "ours")


@pytest.mark.parametrize("error", [spi.CorruptTable("damaged"), ValueError("a bug")])
def test_damage_under_a_rollup_is_told(lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(local_store, "create_exclusively", fails)
    with pytest.raises(type(error)):
        write_rollups(_long_without(lake), 1)


def _long_without(lake: Lake) -> ManifestLog:
    manifests = lake.table.manifests()
    manifests.append(following(manifests.head()[0]))
    return manifests


def test_the_folder_of_rollups_is_made_again(lake: Lake) -> None:
    manifests = _long_without(lake)
    (manifests.folder / "rollups").rmdir()
    write_rollups(manifests, 1)
    assert _names(manifests) == {(0, 1)}
