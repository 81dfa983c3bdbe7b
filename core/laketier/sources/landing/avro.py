"""Avro's types as Arrow's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from laketier.spi import ConfigError, PluginBroken, UnsupportedType

_PRIMITIVE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def import_fastavro() -> Any:
    """The library. Raises `PluginBroken` where it is not installed."""
    try:
        import fastavro
    except ImportError as error:
        raise PluginBroken(
            "Avro files can't be read", why=str(error), fix="Install it: `pip install 'laketier[avro]'`."
        ) from error
    return fastavro


def arrow_schema(avro: Any, *, where: str) -> pa.Schema:
    """The columns of files with this schema, as fastavro gives it. Raises `UnsupportedType`, and `ConfigError` for a
    schema that is no record."""
    if not isinstance(avro, dict) or avro.get("type") != "record":
        raise ConfigError("the file's Avro schema is not a record, so it has no columns", where=where)
    named: dict[str, Any] = {}
    return pa.schema(_fields(avro, named, where))


def _fields(record: dict[str, Any], named: dict[str, Any], where: str) -> list[pa.Field]:
    named[record["name"]] = None  # so that a record that holds itself is noticed
    fields = [_field(field, named, where) for field in record["fields"]]
    named[record["name"]] = record
    return fields


def _field(field: dict[str, Any], named: dict[str, Any], where: str) -> pa.Field:
    kind, nullable = _type(field["type"], named, where)
    return pa.field(field["name"], kind, nullable=nullable)


def _type(avro: Any, named: dict[str, Any], where: str) -> tuple[pa.DataType, bool]:
    if isinstance(avro, list):
        others = [choice for choice in avro if choice != "null"]
        if len(others) != 1:
            raise UnsupportedType(f"an Avro union of {len(others)} types has no Arrow type", where=where)
        return _type(others[0], named, where)[0], len(others) < len(avro)
    if isinstance(avro, str):
        if avro in _PRIMITIVE:
            return _PRIMITIVE[avro], avro == "null"
        if named.get(avro) is None:
            raise UnsupportedType(f"the Avro type {avro!r} is unknown, or holds itself", where=where)
        return _type(named[avro], named, where)
    logical = avro.get("logicalType")
    if logical == "decimal":
        precision, scale = int(avro["precision"]), int(avro.get("scale", 0))
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale), False
    if logical in _LOGICAL:
        return _LOGICAL[logical], False
    return _complex(avro, named, where), False


def _complex(avro: dict[str, Any], named: dict[str, Any], where: str) -> pa.DataType:
    match avro["type"]:
        case "record":
            return pa.struct(_fields(avro, named, where))
        case "array":
            kind, nullable = _type(avro["items"], named, where)
            return pa.list_(pa.field("item", kind, nullable=nullable))
        case "map":
            kind, nullable = _type(avro["values"], named, where)
            return pa.map_(pa.string(), pa.field("value", kind, nullable=nullable))
        case "fixed":
            named[avro["name"]] = avro
            return pa.binary(int(avro["size"]))
        case "enum":
            named[avro["name"]] = avro
            return pa.string()
        case inner:
            return _type(inner, named, where)[0]
