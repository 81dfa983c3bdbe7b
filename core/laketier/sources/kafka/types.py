"""Arrow types from text, spelled as Arrow prints them: ``timestamp[us, tz=UTC]``, ``list<item: int64>``, …"""

from __future__ import annotations

import re

import pyarrow as pa

from laketier.spi import ConfigError

_PARAMETERS = re.compile(r"(?P<name>\w+)\s*[\[(](?P<inside>[^\])]*)[\])]")
_NESTED = re.compile(r"(?P<name>list|large_list|struct|map)\s*<(?P<inside>.*)>", re.DOTALL)
_DECIMALS = {"decimal32": 9, "decimal64": 18, "decimal128": 38, "decimal256": 76}


def parse_schema(columns: dict[str, str], where: str) -> pa.Schema:
    """The schema of ``columns.<name> = <type>``. Raises `ConfigError` with the column's name."""
    fields = []
    for name, text in columns.items():
        try:
            fields.append(pa.field(name, parse_type(text)))
        except (ValueError, pa.ArrowInvalid) as error:
            raise ConfigError(
                f"columns.{name} = {text!r} is not an Arrow type",
                where=where,
                why=str(error),
                fix="Write it as Arrow prints it, such as int64, string, timestamp[us, UTC], decimal128(10, 2), "
                "list<int64> or struct<x: int64>.",
            ) from None
    return pa.schema(fields)


def parse_type(text: str) -> pa.DataType:
    """Raises `ValueError` for what is not a type."""
    text = text.strip()
    nested = _NESTED.fullmatch(text)
    if nested is not None:
        return _nested(nested["name"], nested["inside"])
    with_parameters = _PARAMETERS.fullmatch(text)
    if with_parameters is not None:
        parameters = [part.strip() for part in with_parameters["inside"].split(",")]
        name = with_parameters["name"]
        if name == "timestamp" and len(parameters) == 2:
            return pa.timestamp(parameters[0], parameters[1].removeprefix("tz=").strip())
        if name in _DECIMALS and len(parameters) == 2:
            if int(parameters[0]) > _DECIMALS[name]:
                raise ValueError(f"{name} has at most {_DECIMALS[name]} digits")
            return getattr(pa, name)(int(parameters[0]), int(parameters[1]))
        if name == "fixed_size_binary":
            return pa.binary(int(parameters[0]))
    try:
        return pa.type_for_alias(text)
    except ValueError:
        raise ValueError(f"{text!r} is unknown") from None


def _nested(name: str, inside: str) -> pa.DataType:
    parts = _parts(inside)
    if name == "struct":
        return pa.struct([_field(part) for part in parts])
    if name == "map" and len(parts) == 2:
        return pa.map_(*(parse_type(part) for part in parts))
    if name in ("list", "large_list") and len(parts) == 1:
        field = _field(parts[0], "item")
        return pa.list_(field) if name == "list" else pa.large_list(field)
    raise ValueError(f"{name}<...> does not have {len(parts)} parts")


def _field(text: str, default: str | None = None) -> pa.Field:
    name, colon, kind = text.partition(":")
    # A colon may also belong to a type within: list<struct<x: int64>>.
    if colon and "<" not in name:
        return pa.field(name.strip(), parse_type(kind))
    if default is None:
        raise ValueError(f"{text.strip()!r} has no name; write name: type")
    return pa.field(default, parse_type(text))


def _parts(text: str) -> list[str]:
    """``text`` cut at the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "<[(") - (character in ">])")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip()]
