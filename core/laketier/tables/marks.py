"""Types that reach us as Arrow structs or binaries with a mark: variants, geometries, geographies.

Arrow has no such types. Spark gives a variant as a struct of two binaries whose field ``metadata`` has the metadata
``variant: true``; without the mark the same struct is an honest one. A format that kept the struct alone would change
what the column is, so what is marked is refused, at the one place that every schema passes.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi.errors import UnsupportedType

ADVICE = {
    "variant": "Turn it into text in the query, to_json(…), or cast it to the type that it has.",
    "geometry": "Turn it into bytes in the query, ST_AsBinary(…), and keep its SRID beside it.",
    "geography": "Turn it into bytes in the query, ST_AsBinary(…), and keep its SRID beside it.",
}
"""Type → what to do about a column of it."""
_EXTENSION = b"ARROW:extension:name"
_EXTENSIONS = {
    b"arrow.parquet.variant": "variant",
    b"parquet.variant": "variant",
    b"geoarrow.wkb": "geometry",
    b"geoarrow.wkt": "geometry",
}


def refuse_marked(schema: pa.Schema, *, where: str | None = None) -> None:
    """Raise `UnsupportedType` for the first column that is marked, or has something marked in it."""
    for field in schema:
        _refuse(field, field.name, where)


def _refuse(field: pa.Field, path: str, where: str | None) -> None:
    kind = _EXTENSIONS.get((field.metadata or {}).get(_EXTENSION, b"")) or _mark_in(field.type)
    if kind is not None:
        raise UnsupportedType(
            f"column {path!r} is a {kind}, which laketier can't keep as one",
            where=where,
            why="Arrow has no such type, and its parts alone would be another column",
            fix=ADVICE[kind],
        )
    for name, child in children(field.type):
        _refuse(child, f"{path}.{name}", where)


def _mark_in(kind: pa.DataType) -> str | None:
    if not pt.is_struct(kind):
        return None
    marks = (kind.field(i).metadata or {} for i in range(kind.num_fields))
    return next((name for mark in marks for name in ADVICE if mark.get(name.encode()) == b"true"), None)
