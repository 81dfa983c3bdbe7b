"""Arrow neither filters nor takes from views of text and bytes; laketier does both, at any level."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from laketier.kit.partition import split_by_values
from laketier.kit.views import only, schema_without_views

VIEW, BYTES = pa.string_view(), pa.binary_view()
LONG = "longer than what a view holds itself"
CASES: dict[str, tuple[pa.DataType, Any]] = {
    "text": (VIEW, LONG),
    "bytes": (BYTES, LONG.encode()),
    "list": (pa.list_(VIEW), ["a", None, LONG]),
    "fixed-size list": (pa.list_(BYTES, 2), [b"a", LONG.encode()]),
    "struct": (pa.struct([pa.field("a", VIEW, nullable=False), ("b", pa.large_list(VIEW))]), {"a": LONG, "b": ["x"]}),
    "map": (pa.map_(VIEW, pa.struct([("c", BYTES)])), [(LONG, {"c": b"d"})]),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_with_views_are_filtered_and_split(name: str) -> None:
    kind, value = CASES[name]
    schema = pa.schema([pa.field("k", pa.int8()), pa.field("v", kind, metadata={"m": "n"})], {"a": "b"})
    rows = pa.record_batch([pa.array([9, 1, 2, 1, 2]), pa.array([None, value, None, None, value], kind)], schema=schema)
    rows = rows.slice(1)
    found = only(rows, pa.array([True, False, None, True]))
    assert found.schema.equals(schema, check_metadata=True)
    assert found.to_pylist() == [rows.to_pylist()[0], rows.to_pylist()[3]]
    parts = list(split_by_values(pa.Table.from_batches([rows]), [rows["k"]]))
    assert [(key, part.to_pylist()) for key, part in parts] == [
        ((key,), [row for row in rows.to_pylist() if row["k"] == key]) for key in (1, 2)
    ]
    assert all(part.schema.equals(schema) for _, part in parts)


def test_a_schema_without_views_is_the_same() -> None:
    schema = pa.schema(
        [("a", pa.string()), ("l", pa.list_(pa.struct([("b", pa.binary())]))), ("v", pa.list_view(VIEW))]
    )
    assert schema_without_views(schema) is schema
