from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from laketier.spi import IncompatibleData

STRICT = pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.int32())])
CASES = {
    "struct": (STRICT, [None, {"a": 1, "b": None}], {"a": None, "b": 1}),
    "list": (pa.list_(pa.field("element", pa.int32(), nullable=False)), [None, [], [1]], [1, None]),
    "list of structs": (pa.list_(STRICT), [None, [None, {"a": 1}]], [{"a": None}]),
    "map": (pa.map_(pa.string(), pa.field("value", STRICT, nullable=False)), [None, [("k", {"a": 1})]], [("k", None)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_null_parent_is_fine_and_a_null_inside_is_not(lake, name):
    kind, good, bad = CASES[name]
    lake.create(pa.schema([("id", pa.int64()), ("c", kind)]))
    ids = pa.array(range(len(good)), pa.int64())
    lake.append(pa.table({"id": ids, "c": pa.array(good, kind)}))
    lake.append(pa.table({"id": pa.array([7], pa.int64())}))
    loose = pa.table({"id": pa.array([8], pa.int64()), "c": pa.array([bad], kind)})
    with pytest.raises(IncompatibleData, match="not null"):
        lake.append(pa.concat_tables([loose, loose]).slice(1))
    expected = [*pa.array(good, kind).to_pylist(), None]
    assert lake.read().sort_by("id")["c"].to_pylist() == expected
    # deltalake's own to_pyarrow_table refuses null structs with not-null fields, whoever wrote them.
    assert pl.read_delta(lake.uri).sort("id")["c"].is_null().to_list() == [value is None for value in expected]
