"""Spark types that would reach Arrow as something else, without a word: refused at the schema, by name."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import types as st

from laketier.spi import UnsupportedType
from laketier.tables.marks import ADVICE

_PLAIN = "UTF8_BINARY"


def refuse_types_apart(schema: st.StructType) -> None:
    """Raise `UnsupportedType` for the first column, at any level, that is a variant, a geometry, a geography, a string
    with a collation, or of a type that a user defined."""
    for path, kind in _all(schema, ()):
        name = kind.typeName()
        if name in ADVICE:
            raise _refused(path, f"a {name}", "as Arrow it would be a struct of its parts", ADVICE[name])
        if isinstance(kind, st.UserDefinedType):
            raise _refused(
                path,
                f"of the user-defined type {type(kind).__name__}",
                "as Arrow it would be what Spark keeps it in, and its former type would be lost",
                "Turn it into plain columns in the query; a vector of Spark's ML with vector_to_array(…).",
            )
        collation = getattr(kind, "collation", _PLAIN) if isinstance(kind, st.StringType) else _PLAIN
        if collation != _PLAIN:
            raise _refused(
                path,
                f"a string with the collation {collation}",
                "no format keeps that, and equal keys would become two",
                f"Write it as it is, with COLLATE {_PLAIN}, or in one spelling, with lower(…).",
            )


def _all(kind: st.DataType, path: tuple[str, ...]) -> Iterator[tuple[str, st.DataType]]:
    if isinstance(kind, st.StructType):
        for field in kind.fields:
            yield from _all(field.dataType, (*path, field.name))
    elif isinstance(kind, st.ArrayType):
        yield from _all(kind.elementType, (*path, "element"))
    elif isinstance(kind, st.MapType):
        yield from _all(kind.keyType, (*path, "key"))
        yield from _all(kind.valueType, (*path, "value"))
    else:
        yield ".".join(path), kind


def _refused(path: str, what: str, why: str, fix: str) -> UnsupportedType:
    return UnsupportedType(f"column {path!r} is {what}, which laketier can't keep", why=why, fix=fix)
