"""Schemas from outside: a few bytes of one may stand for any number of columns, by types that name each other."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from laketier.codecs.avro_references import definitions_in, with_definitions
from laketier.codecs.avro_schema import check_bounded
from laketier.codecs.avro_types import avro_columns
from laketier.codecs.avro_values import columns_of
from laketier.codecs.protobuf_values import ProtobufDecoder
from laketier.spi import ConfigError


def record(name: str, *types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{at}", "type": one} for at, one in enumerate(types)]}


def laughs(levels: int) -> dict[str, Any]:
    """Each type has the one before twice."""
    schema = record("A0", "int")
    for at in range(1, levels + 1):
        schema = record(f"A{at}", schema, f"A{at - 1}")
    return schema


def chain(levels: int) -> dict[str, Any]:
    """Each type names the one before, and none stands within another."""
    return record("R", record("A0", "int"), *(record(f"A{at}", f"A{at - 1}") for at in range(1, levels)))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (laughs(60), "more than 10,000 columns"),
        (record("R", *["int"] * 10_000), "more than 10,000 columns"),
        (record("R", record("N", *["null"] * 200), *["N"] * 60), "more than 10,000 columns"),
        (chain(5_000), "more than 64 deep"),
        ({"type": "record", "name": "R"}, "lacks what it must have: KeyError"),
        ({"type": "fixed", "name": "R", "size": "x"}, "lacks what it must have: ValueError"),
    ],
)
def test_an_avro_schema_of_too_many_columns_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        columns_of(json.dumps(schema), "here")


def test_large_avro_schemas_are_not() -> None:
    assert check_bounded(laughs(11), None).columns == 3 * 2**11 - 1
    assert len(avro_columns(record("R", *["int"] * 9_000), "here")) == 9_000
    columns_of(json.dumps(chain(60)), "here")


def descriptors(levels: int, *, empty: bool = False) -> bytes:
    files = FileDescriptorSet()
    file = files.file.add(name="a.proto", syntax="proto3")
    first = file.message_type.add(name="A0")
    if not empty:
        first.field.add(name="x", number=1, type=FieldDescriptorProto.TYPE_INT32, label=1)
    for at in range(1, levels + 1):
        message = file.message_type.add(name=f"A{at}")
        for number, name in enumerate("lr", 1):
            message.field.add(
                name=name, number=number, type=FieldDescriptorProto.TYPE_MESSAGE, label=1, type_name=f".A{at - 1}"
            )
    return files.SerializeToString()


@pytest.mark.parametrize("empty", [False, True])
def test_a_protobuf_message_of_too_many_columns_is_refused(empty: bool) -> None:
    with pytest.raises(ConfigError, match="more than 10,000 columns"):
        ProtobufDecoder.of(descriptors(50, empty=empty), "A50", where="here")
    assert ProtobufDecoder.of(descriptors(6), "A6", where="here").schema.names == ["l", "r"]


def test_protobuf_messages_within_each_other_without_end_are_refused() -> None:
    files = FileDescriptorSet()
    file = files.file.add(name="a.proto", syntax="proto3")
    file.message_type.add(name="A0").field.add(name="x", number=1, type=FieldDescriptorProto.TYPE_INT32, label=1)
    for at in range(1, 300):
        message = file.message_type.add(name=f"A{at}")
        message.field.add(name="x", number=1, type=FieldDescriptorProto.TYPE_MESSAGE, label=1, type_name=f".A{at - 1}")
    with pytest.raises(ConfigError, match="more than 64 deep"):
        ProtobufDecoder.of(files.SerializeToString(), "A299", where="here")


def test_what_others_define_is_put_where_it_is_named_first() -> None:
    shop = {**record("Item", "int", {"type": "fixed", "name": "Sku", "size": 2}), "namespace": "shop"}
    plain = record("Plain", "string")
    known = {name: found for one in (shop, plain) for name, found in definitions_in(one)}
    assert set(known) == {"shop.Item", "shop.Sku", "Plain"}
    main = record("Main", "shop.Sku", {"type": "array", "items": "shop.Item"}, ["null", "Plain"], {"type": "Plain"})
    whole = with_definitions(main, known)
    assert columns_of(json.dumps(whole), "here")[0].names == ["f0", "f1", "f2", "f3"]
    row = {"f0": b"ab", "f1": [{"f0": 1, "f1": b"cd"}], "f2": {"f0": "x"}, "f3": {"f0": "y"}}
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(json.loads(json.dumps(whole))), row)
    names: dict[str, Any] = {}
    for one in (shop, plain):
        fastavro.parse_schema(json.loads(json.dumps(one)), names)
    parsed = fastavro.parse_schema({**main, "fields": [*main["fields"][:3], {"name": "f3", "type": "Plain"}]}, names)
    assert fastavro.schemaless_reader(io.BytesIO(sink.getvalue()), parsed, None) == row


@pytest.mark.parametrize("schema", [None, 3, {}, {"type": {}}, {"type": "record", "name": "r", "fields": 3}, ["Gone"]])
def test_what_is_no_schema_is_left_to_those_who_check_it(schema: Any) -> None:
    known = dict(definitions_in(record("Plain", "string")))
    with pytest.raises(ConfigError):
        check_bounded(with_definitions(schema, known), "here")
