"""An Avro schema that names types of other schemas, as one that has them itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from laketier.codecs.avro_schema import full_name, names_of
from laketier.codecs.bounds import SCHEMA_DEPTH

_DEFINITIONS = ("record", "error", "enum", "fixed")
Definitions = Mapping[str, tuple[Any, str]]
"""Full name → the definition, and the namespace that it stands in."""


def definitions_in(schema: Any, namespace: str = "", deep: int = 0) -> Iterator[tuple[str, tuple[Any, str]]]:
    """The types that a schema gives names to."""
    if deep > SCHEMA_DEPTH:
        return
    inner = namespace
    if isinstance(schema, dict) and schema.get("type") in _DEFINITIONS and "name" in schema:
        name = full_name(schema, namespace)
        yield name, (schema, namespace)
        inner = name.rpartition(".")[0]
    for part in _parts(schema):
        yield from definitions_in(part, inner, deep + 1)


def with_definitions(schema: Any, known: Definitions) -> Any:
    """``schema`` with the definition of each type of ``known`` where it names it first. What is no schema is left to
    those who check it."""
    return _Inlining(known).type(schema, "", 0)


def _parts(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return schema
    if not isinstance(schema, dict):
        return []
    fields = schema.get("fields")
    found = [field.get("type") for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    return [
        *found,
        *(schema[name] for name in ("items", "values", "type") if isinstance(schema.get(name), list | dict)),
    ]


class _Inlining:
    def __init__(self, known: Definitions) -> None:
        self._known = known
        self._given: set[str] = set()

    def type(self, schema: Any, namespace: str, deep: int) -> Any:
        if deep > SCHEMA_DEPTH:
            return schema
        if isinstance(schema, list):
            return [self.type(choice, namespace, deep + 1) for choice in schema]
        if isinstance(schema, str):
            return self._named(schema, namespace, deep)
        if not isinstance(schema, dict):
            return schema
        kind = schema.get("type")
        if kind in _DEFINITIONS and "name" in schema:
            return self._definition(schema, namespace, deep)
        found = dict(schema)
        for name in ("items", "values"):
            if name in found:
                found[name] = self.type(found[name], namespace, deep + 1)
        if not isinstance(kind, str) or self._stands_for(kind, namespace) is not None:
            return self.type(kind, namespace, deep + 1)
        return found

    def _stands_for(self, name: str, namespace: str) -> str | None:
        return next((one for one in names_of(name, namespace) if one in self._given or one in self._known), None)

    def _named(self, name: str, namespace: str, deep: int) -> Any:
        found = self._stands_for(name, namespace)
        if found is None or found in self._given:
            return name if found is None else found
        definition, within = self._known[found]
        return self._definition(definition, within, deep)

    def _definition(self, schema: Any, namespace: str, deep: int) -> Any:
        name = full_name(schema, namespace)
        if name in self._given:
            return name
        self._given.add(name)
        found = {**schema, "name": name, "namespace": name.rpartition(".")[0]}
        inner = found["namespace"]
        if isinstance(schema.get("fields"), list):
            found["fields"] = [
                {**field, "type": self.type(field.get("type"), inner, deep + 1)} if isinstance(field, dict) else field
                for field in schema["fields"]
            ]
        return found
