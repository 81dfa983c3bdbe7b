from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.connectors.files.files import Files
from laketier.connectors.files.segment import LedgerCheckpoint, Segment
from laketier.spi import CorruptTable

ENTRIES = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, 2**62), st.integers(0, 2**62)),
    min_size=1,
)


def files_of(entries: list[tuple[str, int, int]]) -> Files:
    return Files.of(*map(list, zip(*entries, strict=True)))


def plain(files: Files) -> list[tuple[str, int, int]]:
    return [(entry.path, entry.size, entry.mtime_ns) for entry in files.entries(0, len(files))]


@given(ENTRIES)
def test_documents_are_read_as_they_were_written(entries: list[tuple[str, int, int]]) -> None:
    segment = Segment.decode(Segment(7, "sha256:0", files_of(entries)).encode(), where="test")
    assert (segment.first, segment.previous, plain(segment.files)) == (7, "sha256:0", entries)
    written = LedgerCheckpoint("id", "sha256:1", 3, files_of(entries))
    checkpoint = LedgerCheckpoint.decode(written.encode(), where="test")
    assert (checkpoint.ledger_id, checkpoint.digest, checkpoint.last) == ("id", "sha256:1", 3)
    assert plain(checkpoint.files) == entries


@given(st.binary(max_size=100))
def test_anything_else_is_damaged(data: bytes) -> None:
    for kind in (Segment, LedgerCheckpoint):
        with pytest.raises(CorruptTable, match="test"):
            kind.decode(data, where="test")


@pytest.mark.parametrize(
    "change",
    [{"size": [2**70]}, {"mtime_ns": [-(2**70)]}, {"inode": [2**63]}, {"path": [1]}, {"first": 2**70}, {"first": -1}],
)
def test_numbers_that_no_file_has_are_damage(change: dict[str, Any]) -> None:
    document = json.loads(Segment(7, "sha256:0", files_of([("a", 1, 2)])).encode())
    (document if "first" in change else document["files"]).update(change)
    with pytest.raises(CorruptTable, match="test"):
        Segment.decode(json.dumps(document).encode(), where="test")


def test_a_segment_nested_without_end_is_damage() -> None:
    with pytest.raises(CorruptTable, match="test"):
        Segment.decode(b"[" * 100_000, where="test")


@given(st.data())
def test_one_changed_byte_of_a_checkpoint_is_noticed(data: st.DataObject) -> None:
    encoded = bytearray(LedgerCheckpoint("id", "sha256:1", 3, files_of([("a", 1, 2)])).encode())
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptTable):
        LedgerCheckpoint.decode(bytes(encoded), where="test")
