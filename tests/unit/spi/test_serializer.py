from __future__ import annotations

import ast
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laketier.spi
from laketier.spi import (
    DataclassSerializer,
    LakeSplit,
    SerializationError,
    StagedFile,
    TableDescriptor,
    TableInfo,
    TablePath,
    WriteResult,
    pack,
    unpack,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    name: str
    raw: bytes
    colour: Colour


@dataclass(frozen=True)
class Outer:
    number: int
    share: float
    flag: bool
    maybe: str | None
    inner: Inner | None
    many: tuple[Inner, ...]
    pair: tuple[int, str]
    named: Mapping[str, Inner] = field(default_factory=dict)


text = st.text(st.characters(exclude_categories=["Cs"]))
inner = st.builds(Inner, text, st.binary(), st.sampled_from(Colour))
outer = st.builds(
    Outer,
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none() | text,
    st.none() | inner,
    st.lists(inner, max_size=3).map(tuple),
    st.tuples(st.integers(), text),
    st.dictionaries(text, inner, max_size=3),
)
SERIALIZER = DataclassSerializer(Outer, version=3)
VALUE = Outer(1, 0.5, True, None, Inner("n", b"\x00\xff", Colour.RED), (), (1, "x"))


@given(outer)
def test_round_trip(value: Outer) -> None:
    assert unpack(SERIALIZER, pack(SERIALIZER, value)) == value


@given(outer, st.data())
def test_any_damaged_byte_is_noticed(value: Outer, data: st.DataObject) -> None:
    message = bytearray(pack(SERIALIZER, value))
    place = data.draw(st.integers(0, len(message) - 1))
    message[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SerializationError):
        unpack(SERIALIZER, bytes(message))


def test_any_cut_is_noticed() -> None:
    message = pack(SERIALIZER, VALUE)
    for length in range(len(message)):
        with pytest.raises(SerializationError):
            unpack(SERIALIZER, message[:length])


@given(st.binary(max_size=64))
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(SerializationError):
        unpack(SERIALIZER, garbage)


@pytest.mark.parametrize("version", [0, 2, 4])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(SerializationError, match=f"version {version}, and this reader knows version 3"):
        SERIALIZER.deserialize(version, SERIALIZER.serialize(VALUE))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ('{"number":1}', "missing or unknown"),
        ("[]", "expected dict"),
        ("nonsense", "not JSON"),
        ("\xff", "not JSON"),
    ],
)
def test_a_document_of_another_shape_is_refused(broken: str, says: str) -> None:
    with pytest.raises(SerializationError, match=says):
        SERIALIZER.deserialize(3, broken.encode("latin-1"))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"number":1', '"number":true', r"\$\.number"),
        ('"number":1', '"number":1.0', r"\$\.number"),
        ('"flag":true', '"flag":1', r"\$\.flag"),
        ('"colour":"red"', '"colour":"green"', r"\$\.inner\.colour"),
        ('"raw":"AP8="', '"raw":"*"', r"\$\.inner\.raw"),
        ('"pair":[1,"x"]', '"pair":[1]', r"\$\.pair"),
        ('"many":[]', '"many":[{}]', r"\$\.many\[0\]"),
    ],
)
def test_an_ill_typed_field_is_refused_and_named(old: str, new: str, place: str) -> None:
    document = SERIALIZER.serialize(VALUE).decode()
    assert old in document
    with pytest.raises(SerializationError, match=place):
        SERIALIZER.deserialize(3, document.replace(old, new).encode())


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(SerializationError, match="was given to the serializer of"):
        SERIALIZER.serialize(VALUE.inner)  # type: ignore[arg-type]


def test_a_type_that_messages_can_not_hold_is_refused() -> None:
    with pytest.raises(SerializationError, match="list is not a type"):
        SERIALIZER.serialize(replace(VALUE, maybe=[]))  # type: ignore[arg-type]


def test_what_crosses_processes_can_be_pickled_by_the_engine() -> None:
    """Spark pickles factories and splits, and a factory usually holds its TableInfo."""
    descriptor = TableDescriptor(pa.schema([("a", pa.int64())]))
    info = TableInfo(TablePath("db", "t"), descriptor, "uuid", "/somewhere")
    for value in (info, LakeSplit(index=0), WriteResult.of(info, "a", (StagedFile("f", 1, 2),))):
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - as engines do


def test_the_spi_itself_never_pickles() -> None:
    folder = Path(laketier.spi.__file__).parent
    for module in folder.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not {"pickle", "cloudpickle", "marshal", "shelve"} & set(names), module.name
