"""From an Avro schema to columns, and from fastavro's values to Arrow's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from laketier.spi import ConfigError

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class AvroColumn:
    """The Arrow type, and what makes fastavro's value one that pyarrow takes (None: it is one)."""

    kind: pa.DataType
    convert: Convert | None = None
    nullable: bool = False


def avro_columns(schema: Any, where: str, *, keep_not_null: bool = False) -> Mapping[str, AvroColumn]:
    """The columns of a record. ``keep_not_null``: whether what is inside of them may be declared not null, as the
    schema has it; a topic's schema may change in that, so there it is not. Raises `ConfigError` for another schema,
    and for what no Arrow type holds: unions of several types, and types that hold themselves."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigError("the Avro schema is not a record", where=where, fix="Wrap it in one, or read values as raw.")
    return _Types(where, keep_not_null).fields(schema)


def avro_aliases(schema: Any) -> Mapping[str, tuple[str, ...]]:
    """The names that the columns of a record had, as the schema tells them."""
    fields = [field for field in schema["fields"] if field.get("aliases")]
    return {field["name"]: tuple(field["aliases"]) for field in fields}


class _Types:
    def __init__(self, where: str, keep_not_null: bool) -> None:
        self._where = where
        self._keep_not_null = keep_not_null
        self._named: dict[str, Any] = {}
        self._inside: list[str] = []

    def fields(self, schema: Any, namespace: str = "") -> dict[str, AvroColumn]:
        name, namespace = self._name(schema, namespace)
        if name in self._inside:
            raise ConfigError(
                f"the Avro type {name} contains itself",
                where=self._where,
                fix="Read values as raw, or change the schema.",
            )
        self._inside.append(name)
        found = {field["name"]: self._column(field["type"], namespace) for field in schema["fields"]}
        self._inside.pop()
        return found

    def _name(self, schema: Any, namespace: str) -> tuple[str, str]:
        namespace = schema.get("namespace", namespace)
        name = schema["name"] if "." in schema["name"] or not namespace else f"{namespace}.{schema['name']}"
        self._named[name] = (schema, namespace)
        return name, name.rpartition(".")[0]

    def _column(self, schema: Any, namespace: str) -> AvroColumn:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return AvroColumn(_PRIMITIVES[schema], nullable=schema == "null")
            return self._reference(schema, namespace)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._column(kind, namespace)
        logical = schema.get("logicalType")
        if (kind, logical) in _LOGICAL:
            return AvroColumn(_LOGICAL[kind, logical])
        if logical == "decimal" and kind in ("bytes", "fixed"):
            if kind == "fixed":
                self._name(schema, namespace)
            precision, scale = schema.get("precision"), schema.get("scale", 0)
            if not (
                isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 76 and precision
            ):
                raise ConfigError(
                    f"the Avro schema has a decimal of precision {precision} and scale {scale}",
                    where=self._where,
                    why="a column's precision is 1 to 76, and its scale is not above it",
                )
            return AvroColumn((pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale))
        if logical == "uuid" and kind == "string":
            return AvroColumn(pa.string(), str)
        if kind in _PRIMITIVES:
            return AvroColumn(_PRIMITIVES[kind])
        return self._complex(kind, schema, namespace)

    def _complex(self, kind: str, schema: Any, namespace: str) -> AvroColumn:
        if kind == "record":
            return self._struct(self.fields(schema, namespace))
        if kind == "enum":
            self._name(schema, namespace)
            return AvroColumn(pa.string())
        if kind == "fixed":
            self._name(schema, namespace)
            return AvroColumn(pa.binary(schema["size"]))
        if kind == "array":
            item = self._column(schema["items"], namespace)
            return AvroColumn(pa.list_(self._field("item", item)), _each(item.convert))
        if kind == "map":
            item = self._column(schema["values"], namespace)
            return AvroColumn(pa.map_(pa.string(), self._field("value", item)), _pairs(item.convert))
        return self._reference(kind, namespace)

    def _reference(self, name: str, namespace: str) -> AvroColumn:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise ConfigError(f"the Avro schema names a type {name!r} that it does not have", where=self._where)
        return self._column(*found)

    def _union(self, choices: list[Any], namespace: str) -> AvroColumn:
        kinds = [choice for choice in choices if choice != "null"]
        if len(kinds) != 1:
            raise ConfigError(
                f"the Avro schema has a union of {len(kinds)} types",
                where=self._where,
                why="a column has one type, or one and null",
                fix="Read values as raw, or change the schema.",
            )
        return replace(self._column(kinds[0], namespace), nullable=len(kinds) < len(choices))

    def _field(self, name: str, column: AvroColumn) -> pa.Field:
        return pa.field(name, column.kind, nullable=column.nullable or not self._keep_not_null)

    def _struct(self, columns: dict[str, AvroColumn]) -> AvroColumn:
        kind = pa.struct([self._field(name, column) for name, column in columns.items()])
        return AvroColumn(kind, row_converter(columns))


def row_converter(columns: Mapping[str, AvroColumn]) -> Convert | None:
    """What makes a record of fastavro's one of Arrow's; None where it is one."""
    converters = {name: column.convert for name, column in columns.items() if column.convert is not None}
    if not converters:
        return None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        changed = {name: one(value[name]) for name, one in converters.items() if value[name] is not None}
        return {**value, **changed}

    return convert


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda items: [None if item is None else convert(item) for item in items]


def _pairs(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: list(value.items())
    return lambda value: [(key, None if item is None else convert(item)) for key, item in value.items()]
