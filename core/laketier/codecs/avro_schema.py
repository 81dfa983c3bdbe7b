"""Whether an Avro schema lets a few bytes keep a reader busy for ever, or overflow its stack."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laketier.codecs.bounds import SCHEMA_BYTES, SCHEMA_COLUMNS, SCHEMA_DEPTH
from laketier.spi import ConfigError, PluginBroken

_LEAST = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


@dataclass(frozen=True)
class Extent:
    """Of a type's values. ``least``: bytes that one has at least. ``columns``: how many the type becomes, with those
    inside of it; ``deep``: how many types are within each other. A type that is named again counts again."""

    least: int
    columns: int = 1
    deep: int = 0


def import_fastavro() -> Any:
    """The library. Raises `PluginBroken` where it is not installed."""
    try:
        import fastavro
    except ImportError as error:
        raise PluginBroken("Avro can't be read", why=str(error), fix="Install it: `pip install fastavro`.") from error
    return fastavro


def schema_of_text(text: str | bytes, where: str | None) -> Any:
    """The schema that ``text`` is, as JSON. Raises `ConfigError` for what is none, and as `check_bounded`."""
    schema = parsed_schema(text, where)
    check_bounded(schema, where)
    return schema


def parsed_schema(text: str | bytes, where: str | None) -> Any:
    """``text`` as JSON. Raises `ConfigError`."""
    try:
        if len(text) > SCHEMA_BYTES:
            raise ValueError(f"it has {len(text):,} bytes, more than {SCHEMA_BYTES:,}")
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError("the Avro schema is not JSON", where=where, why=why, fix="Correct the schema.") from None


def check_bounded(schema: Any, where: str | None) -> Extent:
    """How large its values are. Raises `ConfigError` for a schema by which a value may be nested without end, or hold
    any number of items that take no bytes, and for one whose types name each other so often that they become any
    number of columns: the library follows all three, until the process is gone."""
    try:
        return _Walk(where).extent(schema, "", 0)
    except ConfigError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            "the Avro schema is refused",
            where=where,
            why=f"a type in it lacks what it must have: {type(error).__name__}: {error}",
            fix="Correct the schema.",
        ) from None


def full_name(schema: Mapping[str, Any], namespace: str) -> str:
    """The name that a definition gives, with its namespace."""
    namespace = schema.get("namespace", namespace)
    name = str(schema["name"])
    return name if "." in name or not namespace else f"{namespace}.{name}"


def names_of(name: str, namespace: str) -> tuple[str, str]:
    """The full names that ``name`` may stand for in ``namespace``, the likelier first."""
    return (name if "." in name or not namespace else f"{namespace}.{name}"), name


class _Walk:
    def __init__(self, where: str | None) -> None:
        self._where = where
        self._named: dict[str, Extent | None] = {}

    def extent(self, schema: Any, namespace: str, deep: int) -> Extent:
        if deep > SCHEMA_DEPTH:
            raise self._too_deep()
        found = self._extent(schema, namespace, deep)
        if deep + found.deep > SCHEMA_DEPTH:
            raise self._too_deep()
        if found.columns > SCHEMA_COLUMNS:
            raise self._refusal(f"it becomes more than {SCHEMA_COLUMNS:,} columns, those inside of others counted")
        return found

    def _extent(self, schema: Any, namespace: str, deep: int) -> Extent:
        if isinstance(schema, list):
            choices = [self.extent(choice, namespace, deep + 1) for choice in schema]
            return _around(1, choices, max((choice.columns for choice in choices), default=1))
        if isinstance(schema, str):
            return Extent(_LEAST[schema]) if schema in _LEAST else self._reference(schema, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise self._refusal("a type in it is none")
        kind = schema["type"]
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, deep)
            case "array" | "map":
                item = self.extent(schema["items" if kind == "array" else "values"], namespace, deep + 1)
                if kind == "array" and not item.least:
                    raise self._refusal("it has an array whose items take no bytes, so that there may be any number")
                return _around(1, [item], 1 + item.columns)
            case "enum" | "fixed":
                size = 1 if kind == "enum" else int(schema["size"])
                self._named[full_name(schema, namespace)] = Extent(size)
                return Extent(size)
        inner = self.extent(kind, namespace, deep + 1)
        return _around(inner.least, [inner], inner.columns)

    def _record(self, schema: dict[str, Any], namespace: str, deep: int) -> Extent:
        name = full_name(schema, namespace)
        self._named[name] = None
        inner = name.rpartition(".")[0]
        fields = [self.extent(field["type"], inner, deep + 1) for field in schema["fields"]]
        found = _around(sum(field.least for field in fields), fields, 1 + sum(field.columns for field in fields))
        self._named[name] = found
        return found

    def _reference(self, name: str, namespace: str) -> Extent:
        for one in names_of(name, namespace):
            if one in self._named:
                found = self._named[one]
                if found is None:
                    raise self._refusal(f"the Avro type {one} contains itself")
                return found
        raise self._refusal(f"the Avro schema names a type {name!r} that it does not have")

    def _too_deep(self) -> ConfigError:
        return self._refusal(f"it is nested more than {SCHEMA_DEPTH} deep")

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(
            "the Avro schema is refused", where=self._where, why=why, fix="Change the schema, or read values as raw."
        )


def _around(least: int, inner: Sequence[Extent], columns: int) -> Extent:
    return Extent(least, columns, 1 + max((one.deep for one in inner), default=0))
