from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import convert_to_deltalake, write_deltalake

from laketier.spi import CorruptTable, IncompatibleData
from laketier_delta.nullability import declared

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


WIDER = [
    (pa.int16(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.date32(), pa.timestamp("us")),
    (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
    (pa.large_string(), pa.string()),
    (pa.binary(), pa.string()),
    (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    (pa.null(), pa.bool_()),
    (pa.list_(pa.int32()), pa.list_(pa.int64())),
    (pa.uuid(), pa.binary()),
    (pa.list_(pa.json_()), pa.list_(pa.string())),
]


@pytest.mark.parametrize(("found", "wanted"), WIDER, ids=str)
def test_a_column_of_a_file_may_be_of_another_type_of_the_family(found, wanted):
    assert declared(pa.nulls(2, found), wanted, where="a file").equals(pa.nulls(2, wanted))


OTHERS = [
    (pa.int64(), pa.string()),
    (pa.string(), pa.int64()),
    (pa.bool_(), pa.int32()),
    (pa.int64(), pa.timestamp("us")),
    (pa.date32(), pa.string()),
    (pa.json_(), pa.int64()),
    (pa.list_(pa.int64()), pa.list_(pa.string())),
    (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.string())])),
]


@pytest.mark.parametrize(("found", "wanted"), OTHERS, ids=str)
def test_a_column_of_a_file_is_not_cast_to_another_family(found, wanted):
    """Arrow would make texts of numbers, and moments of them, without a word."""
    with pytest.raises(CorruptTable, match="a file: a column of a data file is"):
        declared(pa.nulls(2, found), wanted, where="a file")


def test_texts_that_duckdb_marked_as_json_are_texts(lake):
    """Parquet has a mark for them, and one for UUIDs, which pyarrow reads as types of its own, and Delta has none."""
    Path(lake.uri).mkdir(parents=True)
    rows = """SELECT 1 AS id, '{"a": 1}'::JSON AS text, '00000000-0000-0000-0000-000000000001'::UUID AS uuid"""
    duckdb.sql(f"COPY ({rows}) TO '{lake.uri}/a.parquet' (FORMAT parquet)")
    convert_to_deltalake(lake.uri)
    assert lake.read().to_pylist() == [{"id": 1, "text": '{"a": 1}', "uuid": bytes(15) + b"\x01"}]


def test_a_file_from_before_a_column_got_another_type_is_not_called_damaged(lake):
    """Nothing is wrong with it. Whoever reads on from an older version has the columns of today."""
    lake.create()
    lake.append(pa.table({"id": [1], "v": ["a"]}))
    version = lake.table.snapshot_id
    write_deltalake(lake.uri, pa.table({"id": [2], "v": [7]}), mode="overwrite", schema_mode="overwrite")
    plan = lake.storage.changes(lake.table).plan(version, version + 1)
    with pytest.raises(CorruptTable, match="gave the column another type since") as raised:
        list(lake.storage.source(lake.table).read(plan.splits[0], plan.schema))
    assert "read from a version on" in str(raised.value)
