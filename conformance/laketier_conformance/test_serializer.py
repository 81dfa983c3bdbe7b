"""What crosses processes: versioned, checked, and never pickle."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from laketier.spi import Feature, ScanRequest, SerializationError, SimpleVersionedSerializer, WriteResult, pack, unpack
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, Table, ids_of


class _Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


def _result(table: Table) -> tuple[SimpleVersionedSerializer[WriteResult], WriteResult]:
    return table.factory.write_result_serializer, table.staged(ids_of(0))


def test_a_result_travels_unchanged(table: Table) -> None:
    serializer, result = _result(table)
    expect(unpack(serializer, pack(serializer, result)), result, "a result that was packed and unpacked")
    expect(
        serializer.deserialize(serializer.version, serializer.serialize(result)),
        result,
        "a result that was serialised and deserialised",
    )


def test_an_empty_result_travels(table: Table) -> None:
    serializer, _ = _result(table)
    empty = table.staged([])
    expect(unpack(serializer, pack(serializer, empty)), empty, "an empty result that was packed and unpacked")


@pytest.mark.needs(Feature.UPSERT)
def test_the_names_of_replaced_files_travel(lake: Lake) -> None:
    """The core names them once the task has staged its files, and sends all to the driver."""
    table = lake.create(primary_key=("id",))  # a format without upserts refuses here
    serializer, result = _result(table)
    for staged in (result, table.staged([])):
        named = replace(staged, replaced=("one", "data/two \u00e9"))
        expect(unpack(serializer, pack(serializer, named)), named, "a result that replaces files, packed and unpacked")


def test_another_version_is_refused(table: Table) -> None:
    serializer, result = _result(table)
    for version in (serializer.version + 1, serializer.version + 1000):
        with refused(SerializationError, f"a result of version {version} is deserialised"):
            serializer.deserialize(version, serializer.serialize(result))


def test_damage_is_noticed(table: Table) -> None:
    serializer, result = _result(table)
    message = pack(serializer, result)
    for place in range(0, len(message), max(1, len(message) // 200)):
        damaged = bytearray(message)
        damaged[place] ^= 0x41
        with refused(SerializationError, f"a message is unpacked whose byte {place} is another one"):
            unpack(serializer, bytes(damaged))
    for length in (0, 1, 11, len(message) // 2, len(message) - 1):
        with refused(SerializationError, f"a message is unpacked of which {length} bytes are left"):
            unpack(serializer, message[:length])


@pytest.mark.parametrize("garbage", [b"", b"{}", b"[]", b"null", b"\x00" * 40, b"{", b'{"files":1}'])
def test_garbage_is_refused(table: Table, garbage: bytes) -> None:
    serializer, _ = _result(table)
    with refused(SerializationError, f"{garbage!r} is deserialised as a result"):
        serializer.deserialize(serializer.version, garbage)


def test_nothing_is_unpickled(table: Table, tmp_path: Path) -> None:
    serializer, result = _result(table)
    assert not serializer.serialize(result).startswith(b"\x80"), "this looks like pickle"
    with refused(SerializationError, "a pickle is deserialised as a result"):
        serializer.deserialize(serializer.version, pickle.dumps(_Bomb(tmp_path / "exploded")))
    assert not (tmp_path / "exploded").exists(), "nothing of a result is unpickled"


def test_a_split_travels_unchanged(table: Table) -> None:
    table.append(0)
    source = table.source
    serializer = source.split_serializer
    splits = source.plan(ScanRequest()).splits
    assert splits, "a table with rows has splits"
    for split in splits:
        if split.payload is not None:
            assert type(split.payload).__dataclass_params__.frozen, "the payload of a split is a frozen dataclass"
        expect(unpack(serializer, pack(serializer, split)), split, "a split that was packed and unpacked")
        with refused(SerializationError, "a split of the next version is deserialised"):
            serializer.deserialize(serializer.version + 1, serializer.serialize(split))
        with refused(SerializationError, "a split is deserialised whose last bytes are gone"):
            serializer.deserialize(serializer.version, serializer.serialize(split)[:-2])
