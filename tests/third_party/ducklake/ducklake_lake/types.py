"""Arrow's types and DuckDB's. A type that does not come back as it went in is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from ducklake_lake.library import quoted
from laketier import spi

PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "utinyint",
    pa.uint16(): "usmallint",
    pa.uint32(): "uinteger",
    pa.uint64(): "ubigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "varchar",
    pa.binary(): "blob",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}
ARROW = {name: arrow for arrow, name in PLAIN.items()}


def to_sql(arrow: pa.DataType) -> str:
    """Raises `KeyError` for a type that DuckLake has not."""
    if pa.types.is_decimal128(arrow) and arrow.scale >= 0:
        return f"decimal({arrow.precision}, {arrow.scale})"
    if pa.types.is_list(arrow):
        return f"{to_sql(arrow.value_type)}[]"
    if pa.types.is_map(arrow):
        return f"map({to_sql(arrow.key_type)}, {to_sql(arrow.item_type)})"
    if pa.types.is_struct(arrow):
        return f"struct({', '.join(f'{quoted(each.name)} {to_sql(each.type)}' for each in arrow)})"
    return PLAIN[arrow]


def to_arrow(duck: Any) -> pa.DataType:
    """The Arrow type of a DuckDB type. Raises `KeyError` for others than ours."""
    if duck.id == "decimal":
        return pa.decimal128(*(number for _, number in duck.children))
    if duck.id == "list":
        return pa.list_(to_arrow(duck.children[0][1]))
    if duck.id == "map":
        return pa.map_(*(to_arrow(child) for _, child in duck.children))
    if duck.id == "struct":
        return pa.struct([(name, to_arrow(child)) for name, child in duck.children])
    return ARROW[duck.id]


def check(field: pa.Field) -> None:
    """Raise `UnsupportedType` for a column that would change."""
    try:
        held = to_arrow(duckdb.sqltype(to_sql(field.type)))
    except (KeyError, duckdb.Error):
        held = None
    if held != field.type:
        raise spi.UnsupportedType(
            f"DuckLake can't hold the column {field.name!r} exactly",
            where=f"column {field.name}",
            why=f"its type is {field.type}",
            fix="Cast it to a type of DuckLake, such as int64, string, or timestamp[us].",
        )
