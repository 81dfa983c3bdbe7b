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
        pytest.param("[" * 200_000, "not JSON", id="deep"),
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
        ('"share":0.5', '"share":1' + "0" * 400, "Outer refuses its fields"),
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


def test_a_message_is_refused_for_each_part_of_its_frame() -> None:
    message = pack(SERIALIZER, VALUE)
    assert unpack(SERIALIZER, message) == VALUE
    with pytest.raises(SerializationError, match="not a message of laketier: it starts with"):
        unpack(SERIALIZER, b"X" + message[1:])
    with pytest.raises(SerializationError, match="its checksum differs"):
        unpack(SERIALIZER, message[:-3] + b"1" + message[-2:])
    for short in (b"", message[:11]):
        with pytest.raises(SerializationError, match="too short"):
            unpack(SERIALIZER, short)
    with pytest.raises(SerializationError, match="is not JSON"):
        unpack(SERIALIZER, b"LKT1" + (3).to_bytes(4, "big") + bytes(4))


def test_the_text_of_a_value_is_for_ever() -> None:
    value = replace(VALUE, maybe="ö", named={"ü": Inner("n", b"", Colour.BLUE)})
    assert SERIALIZER.serialize(value).decode() == (
        '{"flag":true,"inner":{"colour":"red","name":"n","raw":"AP8="},"many":[],"maybe":"ö",'
        '"named":{"ü":{"colour":"blue","name":"n","raw":""}},"number":1,"pair":[1,"x"],"share":0.5}'
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"share":0.5', '"share":2', None),
        ('"share":0.5', '"share":"2"', "expected float, found str"),
        ('"number":1', '"number":null', "expected int, found NoneType"),
        ('"maybe":null', '"maybe":1', "expected str, found int"),
        ('"inner":{', '"inner":3,"more":{', r"fields \['more'\] of Outer are missing or unknown"),
        ('"pair":[1,"x"]', '"pair":[1,"x",2]', "expected 2 items, found 3"),
        ('"named":{}', '"named":[]', "expected dict, found list"),
        ('"named":{}', '"named":{"a":1}', r"\$\.named\.a: expected dict"),
        ('"raw":"AP8="', '"raw":"AP8"', "damaged bytes"),
        ('"raw":"AP8="', '"raw":3', "expected str"),
    ],
)
def test_each_field_is_read_as_its_type_says(old: str, new: str, says: str | None) -> None:
    text = SERIALIZER.serialize(VALUE).decode()
    assert old in text
    changed = text.replace(old, new).encode()
    if says is None:
        found = SERIALIZER.deserialize(3, changed)
        assert (found.share, type(found.share)) == (2.0, float)
        return
    with pytest.raises(SerializationError, match=says):
        SERIALIZER.deserialize(3, changed)


def test_a_class_that_refuses_its_fields_is_told() -> None:
    serializer = DataclassSerializer(Picky)
    with pytest.raises(SerializationError, match=r"\$: Picky refuses its fields, because too small"):
        serializer.deserialize(1, b'{"number":0}')
    with pytest.raises(SerializationError, match=r"\$: Picky refuses its fields, because no number"):
        serializer.deserialize(1, b'{"number":-1}')
    assert serializer.deserialize(1, b'{"number":1}') == Picky(1)


@dataclass(frozen=True)
class Picky:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise TypeError("no number")
        if not self.number:
            raise ValueError("too small")


def test_what_json_can_not_hold_is_refused() -> None:
    for odd in ([1], {1}, object(), Inner):
        with pytest.raises(SerializationError, match="is not a type that messages can hold"):
            SERIALIZER.serialize(replace(VALUE, maybe=odd))
    with pytest.raises(SerializationError):
        SERIALIZER.serialize(replace(VALUE, named={"a": {1}}))


@dataclass(frozen=True)
class Odd:
    either: int | str
    one: tuple[int]
    plain: dict[str, int]


def test_rarer_types_of_fields() -> None:
    serializer = DataclassSerializer(Odd)
    value = Odd(1, (2,), {"a": 3})
    text = serializer.serialize(value)
    assert serializer.deserialize(1, text) == value
    for old, new, says in (
        (b'"either":1', b'"either":null', "expected int, found NoneType"),
        (b'"one":[2]', b'"one":[2,3]', "expected 1 items, found 2"),
        (b'"plain":{"a":3}', b'"plain":{"a":"3"}', r"\$\.plain\.a: expected int"),
    ):
        with pytest.raises(SerializationError, match=says):
            serializer.deserialize(1, text.replace(old, new))


def test_the_innermost_place_is_told_as_it_is() -> None:
    text = SERIALIZER.serialize(VALUE).replace(b'"red"', b'"green"')
    with pytest.raises(SerializationError) as caught:
        SERIALIZER.deserialize(3, text)
    assert str(caught.value) == "$.inner.colour: 'green' is no Colour"
    with pytest.raises(SerializationError) as caught:
        SERIALIZER.deserialize(3, b'{"z":1,"y":2,"x":3,"w":4,"number":1}')
    assert "'share', 'w', 'x', 'y', 'z']" in str(caught.value)
