"""``--where 'total >= 10'``: one comparison as text."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from laketier.spi import ConfigError, Leaf, Op

_OPERATORS = r"<=|>=|!=|=|<|>|\bis not null\b|\bis null\b|\bin\b"
_FILTER = re.compile(rf"\s*(?P<column>.+?)\s*(?P<op>{_OPERATORS})\s*(?P<value>.*?)\s*\Z")


def parse_filter(text: str, schema: pa.Schema) -> Leaf:
    """Read ``column op value``, with the value typed by the column. Raises `ConfigError`."""
    match = _FILTER.match(text)
    if match is None:
        raise ConfigError(f"--where {text!r} is not a comparison", fix="For example --where 'total >= 10'.")
    column, op = match["column"], Op(match["op"])
    index = schema.get_field_index(column)
    if index < 0:
        raise ConfigError(f"--where {text!r}: no column {column!r}", fix=f"The columns are {', '.join(schema.names)}.")
    if op in (Op.IS_NULL, Op.NOT_NULL):
        return Leaf(column, op)
    kind = schema.field(index).type
    if op is Op.IN:
        items = match["value"].strip("()[] ").split(",")
        return Leaf(column, op, tuple(_typed(item.strip(), kind, text) for item in items))
    return Leaf(column, op, _typed(match["value"], kind, text))


def _typed(value: str, kind: pa.DataType, text: str) -> Any:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    try:
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"--where {text!r}: {json.dumps(value)} is not {kind}") from error
