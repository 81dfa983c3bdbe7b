"""What a split carries for its reader: typed, and refused where it is of another type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier.spi import (
    DataclassSerializer,
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SerializationError,
    pack,
    unpack,
)


class Kind(Enum):
    DATA = "data"
    DELETES = "deletes"


@dataclass(frozen=True)
class Inner:
    path: str
    kind: Kind = Kind.DATA


@dataclass(frozen=True)
class Part:
    version: int
    files: tuple[Inner, ...]
    names: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    values: bytes = b""


class Plain(LakeSource):
    def plan(self, request: ScanRequest) -> ScanPlan:
        raise NotImplementedError

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class Typed(Plain):
    split_payload: ClassVar[type] = Part


PART = Part(3, (Inner("a"), Inner("b", Kind.DELETES)), {"old": "new", "gone": None}, b"\x00\xff")
SPLIT = LakeSplit(index=1, rows=4, limit=2, files=("a",), partition=(("p", None),), payload=PART)


def test_a_payload_travels_with_its_types() -> None:
    serializer = Typed().split_serializer
    again = unpack(serializer, pack(serializer, SPLIT))
    assert again == SPLIT
    assert type(again.payload) is Part
    assert again.payload.files[1].kind is Kind.DELETES
    assert hash(again) == hash(SPLIT), "splits are keys, and payloads may hold mappings"


def test_a_source_without_payloads_needs_to_say_nothing() -> None:
    serializer = Plain().split_serializer
    split = replace(SPLIT, payload=None)
    assert unpack(serializer, pack(serializer, split)) == split


@pytest.mark.parametrize("payload", [{"path": "a"}, None, Inner("a")], ids=repr)
def test_a_payload_of_another_type_is_refused_where_it_is_made(payload: Any) -> None:
    with pytest.raises(SerializationError, match=r"payload of a LakeSplit is a \w+, and a Part was declared"):
        pack(Typed().split_serializer, replace(SPLIT, payload=payload))
    with pytest.raises(SerializationError, match="and a NoneType was declared"):
        pack(Plain().split_serializer, SPLIT)


@pytest.mark.parametrize(
    "changes",
    [
        None,
        [],
        {"version": "3"},
        {"version": True},
        {"files": ["a"]},
        {"files": [{"path": "a", "kind": "code"}]},
        {"files": [{"path": "a"}]},
        {"names": {"old": 1}},
        {"values": "!"},
        {"more": 1},
    ],
    ids=repr,
)
def test_a_hostile_payload_is_refused(changes: Any) -> None:
    serializer = Typed().split_serializer
    document = json.loads(serializer.serialize(SPLIT))
    document["payload"] = document["payload"] | changes if isinstance(changes, dict) else changes
    with pytest.raises(SerializationError):
        serializer.deserialize(serializer.version, json.dumps(document).encode())


def test_a_split_of_an_older_laketier_is_refused_by_its_version() -> None:
    serializer = Typed().split_serializer
    older = DataclassSerializer(LakeSplit, version=1, payload=Part)
    with pytest.raises(SerializationError, match="LakeSplit has version 1, and this reader knows version 2"):
        unpack(serializer, pack(older, SPLIT))
