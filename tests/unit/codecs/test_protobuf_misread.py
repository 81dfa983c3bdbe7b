"""A field that a Protobuf message has, and its library passed over, is told: its column would be null, or 0."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from hostile_values import DESCRIPTORS
from laketier.codecs.protobuf_values import ProtobufDecoder

KINDS = descriptor_pb2.FieldDescriptorProto


def descriptors(syntax: str) -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax=syntax)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="n", number=1, type=KINDS.TYPE_INT32, label=KINDS.LABEL_OPTIONAL)
    row = file.message_type.add(name="Row")
    entry = row.nested_type.add(name="ManyEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=KINDS.TYPE_STRING, label=KINDS.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=KINDS.TYPE_MESSAGE, label=KINDS.LABEL_OPTIONAL, type_name=".Inner")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    for number, (name, type_, label, type_name) in enumerate(
        [
            ("id", KINDS.TYPE_INT64, KINDS.LABEL_OPTIONAL, None),
            ("one", KINDS.TYPE_MESSAGE, KINDS.LABEL_OPTIONAL, ".Inner"),
            ("list", KINDS.TYPE_MESSAGE, KINDS.LABEL_REPEATED, ".Inner"),
            ("many", KINDS.TYPE_MESSAGE, KINDS.LABEL_REPEATED, ".Row.ManyEntry"),
            ("kind", KINDS.TYPE_ENUM, KINDS.LABEL_OPTIONAL, ".Kind"),
        ],
        1,
    ):
        row.field.add(name=name, number=number, type=type_, label=label, type_name=type_name)
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


GOOD = b"\x08\x07"
ODD = b"\x0a\x01x"  # the field 1, as text
MISREAD = {
    "a number as text": (ODD, "'id' is written as bytes with a length"),
    "a number in 64 bits": (b"\x09" + b"\x01" * 8, "'id' is written as 64 bits"),
    "a message as a number": (b"\x10\x05", "'one' is written as a varint"),
    "within a message": (b"\x12\x03" + ODD, "'n' is written as bytes with a length"),
    "within a list": (b"\x1a\x00\x1a\x03" + ODD, "'n' is written as bytes with a length"),
    "within a map": (b"\x22\x08\x0a\x01k\x12\x03" + ODD, "'n' is written as bytes with a length"),
}


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize("case", MISREAD)
def test_a_field_of_another_form_is_a_bad_record(case: str, syntax: str) -> None:
    decoder = ProtobufDecoder.of(descriptors(syntax), "Row", where="here")
    value, why = MISREAD[case]
    found = decoder.decode([GOOD, value, GOOD])
    assert [row["id"] for row in found.rows.to_pylist()] == [7, 7]
    assert [(one.index, why in one.error) for one in found.bad] == [(1, True)]


def test_a_number_that_a_closed_enum_does_not_have_is_a_bad_record() -> None:
    value = b"\x28\x05"
    [bad] = ProtobufDecoder.of(descriptors("proto2"), "Row", where="here").decode([value]).bad
    assert bad.error == "its field 'kind' is 5, which the enum Kind has no name for"
    open_enum = ProtobufDecoder.of(descriptors("proto3"), "Row", where="here").decode([value])
    assert open_enum.rows.to_pylist()[0]["kind"] == "5"


def test_fields_that_the_schema_has_not_are_passed_over_at_any_depth() -> None:
    more = b"\x78\x01"
    value = GOOD + more + b"\x12\x02" + more + b"\x22\x07\x0a\x01k\x12\x02" + more
    found = ProtobufDecoder.of(descriptors("proto3"), "Row", where="here").decode([value])
    assert not found.bad
    assert found.rows.to_pylist()[0]["id"] == 7


def test_a_timestamp_beyond_nanoseconds_says_so() -> None:
    value = b"\x22\x06\x08\x80\xd2\xc4\xe0\x26"
    [bad] = ProtobufDecoder.of(DESCRIPTORS, "Row", where="here").decode([value]).bad
    assert bad.error == "a Timestamp is 10402998528 s since 1970, beyond the years 1677 to 2262 of a timestamp[ns]"
