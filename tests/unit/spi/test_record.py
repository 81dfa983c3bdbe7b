from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.spi import CorruptTable, RecordStore, Token, Watermark
from laketier.spi.record import record_pointer

MARK = Watermark(Token("p", "r", 3), "commit", 7)


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(pafs.LocalFileSystem(), str(tmp_path))


@pytest.mark.parametrize("pipeline", ["p", "..", "a/b", "ünï cøde", "A", "a", "%2F", ".hidden", "x" * 80])
def test_round_trip_for_any_pipeline_name(store: RecordStore, tmp_path: Path, pipeline: str) -> None:
    mark = replace(MARK, token=Token(pipeline, "r", 3))
    pointer = store.put(mark)
    assert store.get(pipeline, pointer) == mark
    (file,) = tmp_path.rglob("*.json")
    assert file.parent.parent == tmp_path / "_laketier", "it stays below its folder"


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
