"""What the versions of a dataset tell of rounds and of files, with datasets that tell it in other ways."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    CorruptTable,
    FeatureNotSupported,
    OrphanFile,
    OutsideTable,
    RolledBack,
    StorageError,
    TableError,
    Token,
    UnknownOutcome,
    Watermark,
)
from laketier_lance import maintenance, rounds, state, tracked
from laketier_lance.index_folders import FOLDER
from laketier_lance.maintenance import INDEX, LanceMaintenance, _candidates, _manifests, _unlinked
from laketier_lance.options import LanceOptions
from laketier_lance.rounds import LanceRound, rounds_since
from laketier_lance.state import LanceTableState, find_commit
from laketier_lance.table import COMMIT_ID, LAST, LOST_PREFIX, PIPELINE, TABLE_UUID, watermark_key

SEGMENT = "0a1b2c3d-0000-4000-8000-0123456789ab"
ATTEMPT = "0123456789abcdef" * 2


# -- rounds ----------------------------------------------------------------------------------------------------------


class Told:
    """Versions and what their transactions say. ``recent``: how many of the newest are told in one call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, recent: int | None = None) -> None:
        self.recent = recent
        self.gone: set[int] = set()
        self.asked: list[Any] = []
        monkeypatch.setattr(rounds, "recent_transactions", self._recent)
        monkeypatch.setattr(rounds, "read_transaction", self._one)
        monkeypatch.setattr(
            rounds, "versions_of", lambda dataset: self.asked.append("versions") or self._there(dataset)
        )

    def _there(self, dataset: Any) -> list[int]:
        return [each for each in range(1, dataset.version + 1) if each not in self.gone]

    def _one(self, _: Any, version: int) -> Any:
        self.asked.append(version)
        return transaction(version)

    def _recent(self, dataset: Any, count: int) -> list[Any]:
        self.asked.append(("recent", count))
        many = count if self.recent is None else min(count, self.recent)
        return [transaction(dataset.version - each) for each in range(many)]


def transaction(version: int) -> Any:
    if version % 2:
        return None if version % 3 else SimpleNamespace(transaction_properties=None)
    return SimpleNamespace(transaction_properties={PIPELINE: f"p{version}", COMMIT_ID: f"c{version}"})


def rounds_of(*versions: int) -> tuple[LanceRound, ...]:
    return tuple(LanceRound(each, f"p{each}", f"c{each}") for each in versions)


def at(version: int) -> Any:
    return SimpleNamespace(version=version, uri="/t")


def test_rounds_are_read_once_and_told_from_any_version_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told, known = Told(monkeypatch), {TABLE_UUID: os.urandom(8)}
    assert rounds_since(at(8), "/t", known, 3) == rounds_of(4, 6, 8)
    assert told.asked == [("recent", 6)]
    assert rounds_since(at(8), "/t", known, 5) == rounds_of(6, 8)
    assert rounds_since(at(8), "/t", known, 6) == rounds_of(6, 8)
    assert rounds_since(at(8), "/t", known, 8) == rounds_of(8)
    assert rounds_since(at(8), "/t", known, 9) == ()
    assert told.asked[1:] == [("recent", 0)] * 4
    assert rounds_since(at(12), "/t", known, 9) == rounds_of(10, 12), "what follows is read"
    assert told.asked[-1] == ("recent", 4)
    assert rounds_since(at(12), "/t", known, 4) == rounds_of(4, 6, 8, 10, 12)
    assert told.asked[-1] == ("recent", 9), "what was forgotten meanwhile is read again"
    assert rounds_since(at(10), "/t", known, 4) == rounds_of(4, 6, 8, 10), "an older version knows no later ones"
    assert rounds_since(at(20), "/t", known, 15) == rounds_of(16, 18, 20)
    assert told.asked[-1] == ("recent", 6)


def test_rounds_of_other_tables_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told, uuid = Told(monkeypatch), os.urandom(8)
    one, other = {TABLE_UUID: uuid}, {TABLE_UUID: uuid + b"x"}
    for location, metadata in (("/a", one), ("/b", one), ("/a", other)):
        rounds_since(at(8), location, metadata, 3)
        assert told.asked[-1] == ("recent", 6)
    for _ in range(2):
        assert rounds_since(at(8), "/a", {}, 3) == rounds_of(4, 6, 8)
        assert told.asked[-1] == ("recent", 6), "without an identity nothing is remembered"


def test_rounds_that_are_not_told_in_one_call_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch, recent=2)
    told.gone = {4, 5}
    assert rounds_since(at(8), "/t", {}, 2) == rounds_of(2, 6, 8)
    assert told.asked == [("recent", 7), "versions", 2, 3, 6]
    told = Told(monkeypatch, recent=3)
    assert rounds_since(at(8), "/t", {}, 6) == rounds_of(6, 8)
    assert told.asked == [("recent", 3)]


# -- what a state tells ------------------------------------------------------------------------------------------------


def a_state(version: int, attempted_at: int | None = None, **metadata: bytes) -> LanceTableState:
    plain = {key.encode(): value for key, value in metadata.items()}
    return LanceTableState(at(version), "/t", plain, attempted_at, None)


def test_only_what_came_after_the_newest_round_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(state, "rounds_since", lambda *given: asked.append(given[1:]) or ())
    for last, version, first in ((b"7", 9, 8), (b"9", 9, 10), (b"10", 9, 1), (b"7", 7 + 256, 8), (b"7", 8 + 256, 9)):
        found = a_state(version, **{LAST.decode(): last})
        assert found.lost == {}
        assert asked.pop() == ("/t", found.metadata, first)
    a_state(300).lost  # noqa: B018 - it looks
    assert asked.pop()[2] == 45


def test_a_round_that_the_table_forgot(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(epoch: int, version: int | None, commit_id: str = "c") -> bytes:
        return Watermark(Token("p", "r", epoch), commit_id, snapshot_id=version).to_json().encode()

    key = watermark_key("p").decode()
    for metadata, published, lost in (
        ({}, LanceRound(5, "p", "c"), {"p": 5}),
        ({key: told(1, 5)}, LanceRound(5, "p", "other"), {}),
        ({key: told(1, 4)}, LanceRound(5, "p", "other"), {"p": 5}),
        ({key: told(1, 4)}, LanceRound(5, "p", "c"), {}),
        ({key: told(1, 6)}, LanceRound(5, "p", "other"), {}),
        ({key: told(1, None)}, LanceRound(5, "p", "other"), {"p": 5}),
        ({key: told(1, None)}, LanceRound(1, "p", "other"), {"p": 1}),
        ({f"{LOST_PREFIX.decode()}q": b"3"}, LanceRound(5, "p", "c"), {"q": 3, "p": 5}),
    ):
        monkeypatch.setattr(state, "rounds_since", lambda *_, published=published: (published,))
        assert dict(a_state(9, **metadata).lost) == lost
    monkeypatch.setattr(state, "rounds_since", lambda *_: (LanceRound(5, "p", "other"),))
    with pytest.raises(RolledBack, match="version 5 published a later epoch of pipeline 'p' than epoch 1"):
        a_state(9, **{key: told(1, 4)})._refuse_rollback(Watermark(Token("p", "r", 1), "c"))


def test_the_oldest_version_is_cleaned_up_while_it_is_asked_for_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it says nothing of the pipeline. One that is there and can't be read is damage."""
    found = a_state(9)
    found.dataset.checkout_version = lambda version: lance.dataset(f"/nowhere/{version}")
    listed = [[3, 9], [9]]
    monkeypatch.setattr(state, "versions_of", lambda _: listed.pop(0))
    assert found._oldest_with("p") is None
    listed.extend([[3, 9], [3, 9]])
    with pytest.raises(TableError):
        found._oldest_with("p")


def test_a_commit_is_looked_for_from_the_newest_version_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def read(_: Any, version: int) -> Any:
        asked.append(version)
        return (
            None
            if version == 4
            else SimpleNamespace(transaction_properties={COMMIT_ID: f"c{version}"} if version != 7 else None)
        )

    monkeypatch.setattr(state, "read_transaction", read)
    assert find_commit(at(9), lambda each: each.transaction_properties is None, after=4) == 7
    assert asked == [9, 8, 7]
    asked.clear()
    assert find_commit(at(9), lambda _: False, after=4) is None
    assert asked == [9, 8, 7, 6, 5]
    with pytest.raises(UnknownOutcome, match="version 4 was cleaned up"):
        find_commit(at(9), lambda _: False, after=3)
    assert a_state(9, 4).landed("c6")
    assert not a_state(9, 6).landed("c6")
    assert not a_state(9, 4).landed("c1")
    with pytest.raises(UnknownOutcome):
        a_state(9).landed("c1")
    assert a_state(9).spec_id == 0


# -- files that no version needs ------------------------------------------------------------------------------------


def listed(*files: tuple[str, int, int]) -> pa.Table:
    """Paths, sizes and microseconds."""
    paths, sizes, moments = zip(*files, strict=True) if files else ((), (), ())
    return pa.table(
        {
            "path": pa.array(paths, pa.string()),
            "size_bytes": pa.array(sizes, pa.int64()),
            "last_modified": pa.array(moments, pa.timestamp("us")),
        }
    )


KINDS = {
    f"data/{ATTEMPT}-00000.lance": "data",
    "data/theirs.lance": "data",
    "_deletions/0-1-2.arrow": "deletion",
    "_deletions/0-1-2.bin": "deletion",
    "_transactions/1-a.txn": "transaction",
    f"_indices/{SEGMENT}/page.lance": "index",
    f"_indices/{SEGMENT}/staging/page.lance": "index",
    "data/.tmp123": "temporary",
    "_versions/.tmp123": "temporary",
    "_deletions/.tmp123": "temporary",
    "_transactions/.tmp1": "temporary",
}
OTHERS = (
    *(
        "data/x/y.lance",
        "data/x.parquet",
        "x/data/a.lance",
        "_deletions/a.txt",
        "_versions/1.manifest",
        "tree/b/data/a.lance",
    ),
    *("_indices/x/page.lance", f"_indices/{SEGMENT}", "_refs/branches/b.json", ".tmp1", "_other/.tmp1", "data/.tmp1/x"),
)


def test_files_are_told_apart_by_their_paths() -> None:
    files = listed(*((path, at, 5_000_000) for at, path in enumerate([*KINDS, *OTHERS])))
    found = _candidates(files, 5001, without=[], cut_to_seconds=False)
    assert {path: file.kind for path, file in found.items()} == KINDS
    assert all((file.path, file.modified_at) == (path, 5000) for path, file in found.items())
    assert {path: file.attempt for path, file in found.items() if file.attempt} == {
        f"data/{ATTEMPT}-00000.lance": ATTEMPT
    }
    assert found["data/theirs.lance"].bytes == 1
    assert _candidates(files, 5000, without=[], cut_to_seconds=False) == {}
    less = _candidates(files, 5001, without=[INDEX], cut_to_seconds=False)
    assert set(less) == {path for path, kind in KINDS.items() if kind != INDEX}


def test_dates_of_a_store_may_be_cut_to_seconds() -> None:
    files = listed(("data/a.lance", 1, 5_000_999), ("data/b.lance", 1, 5_001_000), ("data/c.lance", 1, 5_999_999))
    exact = _candidates(files, 10**9, without=[], cut_to_seconds=False)
    assert [exact[f"data/{name}.lance"].modified_at for name in "abc"] == [5000, 5001, 5999]
    cut = _candidates(files, 10**9, without=[], cut_to_seconds=True)
    assert [cut[f"data/{name}.lance"].modified_at for name in "abc"] == [5999, 5001, 5999]
    assert set(_candidates(files, 5999, without=[], cut_to_seconds=True)) == {"data/b.lance"}


def test_manifests_are_known_by_their_paths() -> None:
    paths = ["_versions/1.manifest", "tree/b/_versions/2.manifest", "_versions/d3.manifest"]
    others = [
        "_versions/x/1.manifest",
        "a_versions/1.manifest",
        "_versions/1.manifest#1",
        "1.manifest",
        "data/1.manifest",
    ]
    assert _manifests(listed(*((path, 1, 1) for path in [*others[:2], *paths, *others[2:]]))) == paths


def test_manifests_that_a_kill_left_beside_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "_versions"
    folder.mkdir()
    for name in ("1.manifest", "1.manifest#1", "2.manifest#2", "x#1"):
        (folder / name).write_bytes(b"abc")
        os.utime(folder / name, ns=(0, (9_000_000_000 if name[0] == "2" else 5_000_000_000)))
    (folder / "deep").mkdir()
    (folder / "deep" / "3.manifest#1").touch()
    found = _unlinked(str(tmp_path), 9000)
    assert list(found.values()) == [OrphanFile("_versions/1.manifest#1", 3, 5000, "temporary")]
    assert list(found) == ["_versions/1.manifest#1"]
    assert len(_unlinked(str(tmp_path), 9001)) == 2
    assert _unlinked("s3://b/t.lance", 9001) == {}


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A dataset whose files and references are those that a test says."""
    told = SimpleNamespace(
        files=listed(), branches=[], referred=set(), asked=[], location=str(tmp_path), refused=[], error=None
    )

    def read_all() -> pa.Table:
        if told.error is not None:
            raise told.error
        return told.files

    def referred(dataset: Any, wanted: pa.Array, folder: str) -> set[str]:
        told.asked.append((dataset, folder))
        names = set(wanted.to_pylist())
        return {each for each in told.referred if each in names}

    dataset = SimpleNamespace(
        all_files=lambda: SimpleNamespace(read_all=read_all), uri=told.location, checkout_version=lambda name: name
    )
    monkeypatch.setattr(maintenance, "open_dataset", lambda *given: told.asked.append(given) or dataset)
    monkeypatch.setattr(maintenance, "branches_of", lambda _: told.branches)
    monkeypatch.setattr(maintenance, "tracked", referred)
    monkeypatch.setattr(maintenance, "empty_folders", lambda *_: {"f": OrphanFile("f", 0, 1, FOLDER)})
    told.dataset = dataset
    return told


def orphans(listing: Any, before: int = 10**9, location: str = "") -> list[str]:
    return [file.path for file in LanceMaintenance(location or listing.location, LanceOptions()).orphans(before)]


def test_what_no_version_refers_to_is_an_orphan(listing: Any) -> None:
    files = [(path, 1, 5_000_000) for path in ("data/a.lance", "data/b.lance", "data/c.lance", "_versions/1.manifest")]
    listing.files = listed(*files)
    listing.referred = {"data/a.lance", "b.lance", "_versions/1.manifest"}
    assert orphans(listing) == ["data/c.lance", "f"]
    assert listing.asked == [(listing.location, LanceOptions().storage_options()), (listing.dataset, "")]
    assert orphans(listing, 5000) == ["f"], "what is young is not looked at"
    assert len(listing.asked) == 3


def test_each_branch_is_asked(listing: Any) -> None:
    files = [
        "data/a.lance",
        "data/b.lance",
        f"_indices/{SEGMENT}/x",
        "_versions/1.manifest",
        "tree/n/_versions/2.manifest",
    ]
    listing.files = listed(*((path, 1, 5_000_000) for path in files))
    listing.branches = ["n"]
    listing.referred = {"data/a.lance", "_versions/1.manifest", "_versions/2.manifest"}
    assert orphans(listing) == ["data/b.lance", "f"], "indexes are left alone where there is a branch"
    assert listing.asked[1:] == [(listing.dataset, ""), (("n", None), "tree/n/")]
    listing.referred.remove("_versions/2.manifest")
    with pytest.raises(TableError, match="could not all be read") as failure:
        orphans(listing)
    assert "of 1 manifests in 'tree/n/' not all were read" in str(failure.value.why)


def test_nothing_is_an_orphan_where_no_manifest_is_listed(listing: Any) -> None:
    listing.files = listed(("data/a.lance", 1, 5_000_000))
    with pytest.raises(TableError, match="could not all be read") as failure:
        orphans(listing)
    assert "of 0 manifests in 'the dataset' not all were read" in str(failure.value.why)


@pytest.mark.parametrize(
    "path", ["_versions/d7.manifest", "tree/b/_versions/d7.manifest", "tree/a/b/_versions/d1.manifest"]
)
def test_detached_versions_are_refused_on_each_branch(listing: Any, path: str) -> None:
    listing.files = listed((path, 1, 5_000_000))
    with pytest.raises(FeatureNotSupported, match="detached"):
        orphans(listing)
    for other in (f"x/{path}", path.replace("d", "e"), f"{path}#1"):
        listing.files = listed((other, 1, 5_000_000))
        assert orphans(listing) == ["f"]


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (OSError("Object at x Not Found"), TableError, "could not all be read"),
        (RuntimeError("not found"), TableError, "could not all be read"),
        (OSError("odd"), TableError, "could not read the dataset"),
        (ValueError("odd"), CorruptTable, "can't be read"),
        (KeyError("ours"), KeyError, "ours"),
    ],
)
def test_files_that_could_not_be_listed(listing: Any, error: Exception, kind: type[Exception], told: str) -> None:
    listing.error = error
    with pytest.raises(kind, match=told) as failure:
        orphans(listing)
    assert type(failure.value) is kind


def test_what_leads_elsewhere_is_nobodys_here(listing: Any, caplog: pytest.LogCaptureFixture) -> None:
    folder = Path(listing.location)
    (folder / "data").mkdir()
    (folder / "data" / "a.lance").touch()
    (folder / "data" / "linked.lance").symlink_to(folder / "data" / "a.lance")
    ours = LanceMaintenance(listing.location, LanceOptions())
    with caplog.at_level(logging.WARNING):
        assert [ours._is_own(path) for path in ("data/a.lance", "data/linked.lance", "../a.lance")] == [
            True,
            False,
            False,
        ]
    assert len(caplog.records) == 2
    stored = LanceMaintenance("s3://b/t.lance", LanceOptions())
    assert [stored._is_own(path) for path in ("data/a.lance", "../a.lance")] == [True, False]
    (folder / "_versions").symlink_to(folder / "data")
    with pytest.raises(OutsideTable):
        orphans(listing)


def test_mistakes_are_not_taken_for_links(listing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise KeyError("ours")

    monkeypatch.setattr(maintenance, "confined", fails)
    with pytest.raises(KeyError):
        LanceMaintenance(listing.location, LanceOptions())._is_own("data/a.lance")


def test_a_store_is_asked_for_whole_seconds(listing: Any) -> None:
    listing.files = listed(("data/a.lance", 1, 5_000_000), ("_versions/1.manifest", 1, 1))
    listing.referred = {"_versions/1.manifest"}
    assert orphans(listing, 5001) == ["data/a.lance", "f"]
    assert orphans(listing, 5001, "s3://b/t.lance") == ["f"]
    assert orphans(listing, 6000, "s3://b/t.lance") == ["data/a.lance", "f"]


def test_orphans_are_removed_with_the_folders_of_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    other = SEGMENT.replace("0a", "1a")
    orphans = [
        OrphanFile("data/a.lance", 1, 1, "data"),
        OrphanFile("data/kept.lance", 1, 1, "data"),
        OrphanFile(f"_indices/{SEGMENT}/page", 1, 1, INDEX),
        OrphanFile(f"_indices/{other}/page", 1, 1, INDEX),
        OrphanFile("_indices/one", 0, 1, FOLDER),
        OrphanFile("_indices/two", 0, 1, FOLDER),
    ]
    gone = {"data/a.lance", f"_indices/{SEGMENT}/page", "_indices/two"}
    monkeypatch.setattr(maintenance, "delete_files", lambda *given: asked.append(given) or gone)
    monkeypatch.setattr(maintenance, "remove_folders", lambda *given: asked.append(given) or {"one", SEGMENT})
    options = LanceOptions()
    removed = LanceMaintenance("/t", options).remove_orphans(orphans)
    assert [file.path for file in removed] == ["data/a.lance", f"_indices/{SEGMENT}/page", "_indices/one"]
    files = [file.path for file in orphans if file.kind != FOLDER]
    assert asked == [("/t", options, files), ("/t", sorted([SEGMENT, "one", "two"]))]


def test_references_are_those_of_all_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only an unread one refers to would be deleted."""
    batches = [pa.record_batch({"path": ["data/a", "_versions/1.manifest", "data/b"]})]
    dataset = SimpleNamespace(tracked_files=lambda: iter(batches), uri="/t")
    for there, is_refused in (
        ({"_versions/1.manifest"}, False),
        ({"_versions/1.manifest", "_versions/2.manifest"}, True),
    ):
        asked: list[Any] = []
        monkeypatch.setattr(
            tracked, "manifests_of", lambda _, folder, there=there, asked=asked: asked.append(folder) or set(there)
        )
        wanted = pa.array(["data/b", "data/c"])
        if is_refused:
            with pytest.raises(StorageError, match=r"2\.manifest"):
                tracked.tracked(dataset, wanted, "tree/b/")  # type: ignore[arg-type]
            assert asked == ["tree/b/", "tree/b/"]
        else:
            assert tracked.tracked(dataset, wanted, "tree/b/") == {"data/b", "_versions/1.manifest"}  # type: ignore[arg-type]
