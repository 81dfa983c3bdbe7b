from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import RecordStore
from laketier.kit.record import record_pointer
from laketier.spi import CorruptTable, Token, Watermark

MARK = Watermark(Token("p", "r", 3), "commit", 7)


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(pafs.LocalFileSystem(), str(tmp_path))


LONG = ["x" * 255, "x" * 256, "x" * 5_000, "ä" * 5_000, "/" * 300]


@pytest.mark.parametrize("pipeline", ["p", "..", "a/b", "ünï cøde", "A", "a", "%2F", ".hidden", "x" * 80, *LONG])
def test_round_trip_for_any_pipeline_name(store: RecordStore, tmp_path: Path, pipeline: str) -> None:
    mark = replace(MARK, token=Token(pipeline, "r", 3))
    pointer = store.put(mark)
    assert store.get(pipeline, pointer) == mark
    (file,) = tmp_path.rglob("*.json")
    assert file.parent.parent == tmp_path / "_laketier", "it stays below its folder"


def test_names_that_are_too_long_for_a_folder_stay_apart(store: RecordStore) -> None:
    names = [*LONG, "x" * 256 + "y", "x" * 5_000 + "y"]
    pointers = {name: store.put(replace(MARK, token=Token(name, "r", 3))) for name in names}
    for name in names:
        store.put(replace(MARK, token=Token(name, "r", 2)))
    assert sorted(store.pipelines()) == sorted(names)
    future = 1 << 53
    kept = {f"{pointer:016x}.json" for pointer in pointers.values()}
    gone = [file.path for file in store.orphans(pointers.get, future)]
    assert len(gone) == len(names)
    assert not kept & {path.rpartition("/")[2] for path in gone}, "the records of the table's pointers stay"


def test_put_is_idempotent(store: RecordStore, tmp_path: Path) -> None:
    assert store.put(MARK) == store.put(MARK)
    assert len(list(tmp_path.rglob("*"))) == 3


def test_a_missing_record_is_corrupt(store: RecordStore) -> None:
    with pytest.raises(CorruptTable, match="it is missing"):
        store.get("p", 5)


def test_a_changed_record_is_corrupt(store: RecordStore, tmp_path: Path) -> None:
    pointer = store.put(MARK)
    (file,) = tmp_path.rglob("*.json")
    file.write_text(MARK.to_json().replace('"epoch":3', '"epoch":4'))
    with pytest.raises(CorruptTable, match="was changed"):
        store.get("p", pointer)
    with pytest.raises(CorruptTable):
        store.put(MARK)


def test_a_record_of_a_newer_laketier_is_not_told_as_changed(store: RecordStore, tmp_path: Path) -> None:
    """Workers of two versions beside each other: the older one's user was told of a damage."""
    store.put(MARK)
    (file,) = tmp_path.rglob("*.json")
    data = MARK.to_json().replace('"commit":', '"col":1,"commit":').encode()
    pointer = int.from_bytes(hashlib.sha256(data).digest()[:8], "big") >> 1
    file.with_name(f"{pointer:016x}.json").write_bytes(data)
    with pytest.raises(CorruptTable, match=r"more than this laketier understands.*Use that laketier"):
        store.get("p", pointer)


def test_a_torn_record_is_corrupt(store: RecordStore, tmp_path: Path) -> None:
    pointer = store.put(MARK)
    (file,) = tmp_path.rglob("*.json")
    file.write_text(MARK.to_json()[:20])
    with pytest.raises(CorruptTable):
        store.get("p", pointer)


def test_a_record_of_another_pipeline_is_corrupt(store: RecordStore, tmp_path: Path) -> None:
    pointer = store.put(MARK)
    (tmp_path / "_laketier" / "q").mkdir()
    (file,) = tmp_path.rglob("*.json")
    (tmp_path / "_laketier" / "q" / file.name).write_text(file.read_text())
    with pytest.raises(CorruptTable):
        store.get("q", pointer)


@given(st.integers(0), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_pointer_fits_a_signed_long(rows: int, commit: str) -> None:
    assert 0 <= record_pointer(replace(MARK, rows=rows, commit_id=commit)) < 2**63


def put_at(store: RecordStore, root: Path, moment: int, **fields: Any) -> tuple[int, str]:
    """A record that was put at ``moment``: its pointer and its path."""
    mark = replace(MARK, commit_id=str(moment), **fields)
    pointer = store.put(mark)
    (path,) = root.rglob(f"{pointer:016x}.json")
    os.utime(path, ns=(moment * 1_000_000,) * 2)
    return pointer, str(path.relative_to(root))


def orphans(store: RecordStore, before: int, **pointers: int) -> set[str]:
    found = store.orphans(pointers.get, before)
    assert {file.kind for file in found} <= {"record"}
    return {file.path for file in found}


def test_records_are_orphans_when_nobody_points_at_them(store: RecordStore, tmp_path: Path) -> None:
    (_, one), (two, _), (_, lost) = (put_at(store, tmp_path, moment) for moment in (1000, 2000, 3000))
    _, other = put_at(store, tmp_path, 1500, token=Token("a/b.", "r", 3))
    assert orphans(store, 9000, p=two) == {one, lost, other}
    assert orphans(store, 1200, p=two) == set()
    assert orphans(store, 9000, p=two, **{"a/b.": int(Path(other).stem, 16)}) == {one, lost}
    assert RecordStore(pafs.LocalFileSystem(), str(tmp_path / "nothing")).orphans({}.get, 9000) == []


def test_the_record_before_a_young_one_stays(store: RecordStore, tmp_path: Path) -> None:
    """A table state that was opened a moment ago may still point at it, whatever its age."""
    (_, one), (before, _), (young, _) = (put_at(store, tmp_path, moment) for moment in (1000, 2000, 8000))
    temporary = tmp_path / "_laketier" / "p" / f".{before:016x}.json.{'0' * 32}.tmp"
    temporary.touch()
    os.utime(temporary, ns=(3000 * 1_000_000,) * 2)
    assert orphans(store, 5000, p=young) == {one, str(temporary.relative_to(tmp_path))}


def test_nothing_is_an_orphan_beside_a_record_that_is_missing(store: RecordStore, tmp_path: Path) -> None:
    put_at(store, tmp_path, 1000)
    assert orphans(store, 9000, p=5) == set()


@pytest.mark.parametrize("name", ["x.json", "p/x.json", "p/q/0123456789abcdef.json", "0123456789abcdef.json"])
def test_unknown_files_are_no_records(store: RecordStore, tmp_path: Path, name: str) -> None:
    path = tmp_path / "_laketier" / name
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (1, 1))
    assert orphans(store, 9000) == set()
