"""Whether an Avro schema lets a few bytes keep a reader busy for ever, or overflow its stack."""

from __future__ import annotations

import json
from typing import Any

from laketier.codecs.bounds import SCHEMA_BYTES, SCHEMA_DEPTH
from laketier.spi import ConfigError, PluginBroken

_LEAST = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


def import_fastavro() -> Any:
    """The library. Raises `PluginBroken` where it is not installed."""
    try:
        import fastavro
    except ImportError as error:
        raise PluginBroken(
            "Avro can't be read", why=str(error), fix="Install it: `pip install 'laketier[avro]'`."
        ) from error
    return fastavro


def schema_of_text(text: str | bytes, where: str | None) -> Any:
    """The schema that ``text`` is, as JSON. Raises `ConfigError` for what is none, and as `check_bounded`."""
    try:
        if len(text) > SCHEMA_BYTES:
            raise ValueError(f"it has {len(text):,} bytes, more than {SCHEMA_BYTES:,}")
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError("the Avro schema is not JSON", where=where, why=why, fix="Mend the schema.") from None
    check_bounded(schema, where)
    return schema


def check_bounded(schema: Any, where: str | None) -> int:
    """How many bytes a value has at least. Raises `ConfigError` for a schema by which a value may be nested without
    end, or hold any number of items that take no bytes: the library follows both, until the process is gone."""
    return _Walk(where).least(schema, "", 0)


class _Walk:
    def __init__(self, where: str | None) -> None:
        self._where = where
        self._named: dict[str, int | None] = {}

    def least(self, schema: Any, namespace: str, deep: int) -> int:
        if deep > SCHEMA_DEPTH:
            raise self._refusal(f"it is nested more than {SCHEMA_DEPTH} deep")
        if isinstance(schema, list):
            for choice in schema:
                self.least(choice, namespace, deep + 1)
            return 1
        if isinstance(schema, str):
            return _LEAST[schema] if schema in _LEAST else self._reference(schema, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise self._refusal("a type in it is none")
        kind = schema["type"]
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, deep)
            case "array" | "map":
                item = self.least(schema["items" if kind == "array" else "values"], namespace, deep + 1)
                if kind == "array" and not item:
                    raise self._refusal("it has an array whose items take no bytes, so that there may be any number")
                return 1
            case "enum" | "fixed":
                size = 1 if kind == "enum" else int(schema["size"])
                self._named[self._full(schema, namespace)] = size
                return size
        return self.least(kind, namespace, deep + 1)

    def _record(self, schema: dict[str, Any], namespace: str, deep: int) -> int:
        name = self._full(schema, namespace)
        self._named[name] = None
        inner = name.rpartition(".")[0]
        size = sum(self.least(field["type"], inner, deep + 1) for field in schema["fields"])
        self._named[name] = size
        return size

    def _full(self, schema: dict[str, Any], namespace: str) -> str:
        namespace = schema.get("namespace", namespace)
        name = str(schema["name"])
        return name if "." in name or not namespace else f"{namespace}.{name}"

    def _reference(self, name: str, namespace: str) -> int:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for one in (full, name):
            if one in self._named:
                size = self._named[one]
                if size is None:
                    raise self._refusal(f"the Avro type {one} holds itself")
                return size
        raise self._refusal(f"the Avro schema names a type {name!r} that it does not have")

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(
            "the Avro schema is refused", where=self._where, why=why, fix="Change the schema, or read values as raw."
        )
