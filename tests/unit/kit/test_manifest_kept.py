"""Large documents are kept in memory, and never served for another file than the one that was read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from laketier.kit.local_store import LocalStore
from laketier.kit.manifests import kept
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.kept import KeptDocuments
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.rollup import files_at
from laketier.spi import CommitterInitContext, CorruptTable, Token, Watermark
from text_lake import Lake, following


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that are read from now on. Documents of any size are large."""
    found: list[str] = []
    look = LocalStore.read

    def counted(store: LocalStore, path: str) -> bytes:
        data = look(store, path)
        if Path(path).stem.isdigit():
            found.append(Path(path).stem.lstrip("0") or "0")
        return data

    monkeypatch.setattr(LocalStore, "read", counted)
    monkeypatch.setattr(kept, "LARGE", 1)
    return found


@pytest.fixture
def manifests(tmp_path: Path) -> ManifestLog:
    """A table with three manifests. Their files are not there, which nobody asks here."""
    log = Lake(tmp_path / "lake").table.manifests()
    head = log.head()[0]
    for number in (1, 2):
        entry = FileEntry(f"{number:032x}.text", 1, 2, 0, (), None, {"lines": 1})
        head = log.append(following(head, added=(entry,)))
    return log


def test_a_large_document_is_read_once(manifests: ManifestLog, read: list[str]) -> None:
    expected = files_at(manifests, 2)
    read.clear()
    assert files_at(manifests, 2) == expected
    assert manifests.metadata(manifests.read(2)) == manifests.read(0).metadata
    assert read == ["0"], "only what the first manifest says of the table, which nobody had asked before"


def test_a_small_one_is_not_kept(manifests: ManifestLog, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGE", 1 << 20)
    for _ in range(2):
        manifests.read(2)
    assert read == ["2", "2"]


def test_another_file_in_its_place_is_seen_at_once(manifests: ManifestLog, read: list[str]) -> None:
    manifests.read(2)
    path = manifests.path(2)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"rows":1', b'"rows":7'))
    with pytest.raises(CorruptTable, match="damaged"):
        manifests.read(2)
    path.unlink()
    with pytest.raises(CorruptTable, match="missing"):
        manifests.read(2)
    other = replace(manifests.read(1), number=2)
    path.write_bytes(other.encode())
    assert manifests.read(2).added == other.added
    path.write_bytes(data)
    assert manifests.read(2).added != other.added


def test_what_it_says_of_the_table_is_as_checked_as_all_of_it(manifests: ManifestLog, read: list[str]) -> None:
    head = manifests.read(2)
    assert manifests.metadata(head) == manifests.read(0).metadata
    manifests.path(0).write_bytes(manifests.path(1).read_bytes())
    with pytest.raises(CorruptTable, match="another manifest"):
        manifests.metadata(head)


def test_what_is_kept_has_a_bound_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGE", 10)
    documents, store = KeptDocuments(most_bytes=100), LocalStore(tmp_path)
    for name, size in (("a", 40), ("b", 40), ("c", 40), ("small", 9), ("huge", 1000)):
        (tmp_path / name).write_bytes(b"x" * size)

    def built(name: str) -> bool:
        made = []
        documents.get(store, name, "kind", made.append)
        return bool(made)

    assert [built(name) for name in ("a", "b", "a", "b")] == [True, True, False, False]
    assert not built("a"), "which was the oldest"
    assert built("c"), "which takes the place of the one that nobody asked for the longest"
    assert [built(name) for name in ("a", "c", "b")] == [False, False, True]
    assert built("small")
    assert built("small"), "nobody keeps that"
    assert built("huge")
    assert not built("huge"), "alone, and all the same"
    assert [built(name) for name in ("b", "c")] == [True, True]


def test_a_commit_that_failed_changes_nothing_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest manifest is shared with whoever looks next: its watermarks are not the ones that were tried."""
    monkeypatch.setattr(kept, "LARGE", 1)
    lake = Lake(tmp_path / "lake")
    lake.round(0, 1)
    committer = lake.create_committer(CommitterInitContext("c"))

    def fails(*_: object) -> None:
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "create", fails)
        with pytest.raises(OSError, match="no answer"):
            committer.publish(committer.open(), [lake.stage(2)], Watermark(Token("p", "run", 1), "c"))
    found = lake.table.open().watermark("p")
    assert found is not None
    assert found.token.epoch == 0


def test_the_newest_manifest_is_read_once_for_a_plan(manifests: ManifestLog, read: list[str]) -> None:
    head = manifests.read(2)
    read.clear()
    manifests.path(2).unlink()
    assert [entry.path for entry in files_at(manifests, 2, head)] == [f"{number:032x}.text" for number in (1, 2)]
    assert "2" not in read
