"""Fields of a Protobuf message that its library passed over though the schema has them.

A field that is written in another form than its type has counts as unknown, and its column would be null, or 0: as if
the producer had not set it. The same becomes of a number that a closed enum of proto2 does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laketier.codecs.decoding import BadValue

_FORMS = {0: "a varint", 1: "64 bits", 2: "bytes with a length", 3: "a group", 5: "32 bits"}
_VARINT = 0

Check = Callable[[Any], None]


def misread_check(message: Any) -> Check:
    """What raises `BadValue` for a parsed message with such a field, at any depth. ``message``: its descriptor, of one
    that does not contain itself."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    fields = dict(message.fields_by_number)
    inner = [(field.name, _inner_check(field)) for field in message.fields if _holds_messages(field)]

    def check(parsed: Any) -> None:
        for found in UnknownFieldSet(parsed):
            field = fields.get(found.field_number)
            if field is not None:
                raise BadValue(_why(field, found))
        for name, check_inner in inner:
            check_inner(parsed, name)

    return check


def _is_map(field: Any) -> bool:
    return bool(field.message_type.GetOptions().map_entry)


def _holds_messages(field: Any) -> bool:
    if field.message_type is None:
        return False
    return not _is_map(field) or field.message_type.fields_by_name["value"].message_type is not None


def _inner_check(field: Any) -> Callable[[Any, str], None]:
    if _is_map(field):
        each = misread_check(field.message_type.fields_by_name["value"].message_type)

        def of_map(parsed: Any, name: str) -> None:
            entries = getattr(parsed, name)
            for key in entries:
                each(entries[key])

        return of_map
    one = misread_check(field.message_type)

    def of_many(parsed: Any, name: str) -> None:
        for item in getattr(parsed, name):
            one(item)

    def of_one(parsed: Any, name: str) -> None:
        if parsed.HasField(name):
            one(getattr(parsed, name))

    return of_many if field.is_repeated else of_one


def _why(field: Any, found: Any) -> str:
    if field.enum_type is not None and found.wire_type == _VARINT:
        return f"its field {field.name!r} is {found.data}, which the enum {field.enum_type.full_name} has no name for"
    form = _FORMS.get(found.wire_type, "of an unknown form")
    return f"its field {field.name!r} is written as {form}, which its type in the schema is not"
