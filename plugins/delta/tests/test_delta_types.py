"""The type table against what deltalake really makes of each type."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from laketier.spi import AddColumn, UnsupportedType
from laketier_delta.types import TYPE_TABLE, delta_schema

KEPT = {
    "bool": (pa.bool_(), "boolean"),
    "int8": (pa.int8(), "byte"),
    "int16": (pa.int16(), "short"),
    "int32": (pa.int32(), "integer"),
    "int64": (pa.int64(), "long"),
    "float32": (pa.float32(), "float"),
    "float64": (pa.float64(), "double"),
    "decimal32(p, s)": (pa.decimal32(5, 2), "decimal(5,2)"),
    "decimal64(p, s)": (pa.decimal64(10, 2), "decimal(10,2)"),
    "decimal128(p, s)": (pa.decimal128(38, 38), "decimal(38,38)"),
    "decimal256(p, s)": (pa.decimal256(38, 0), "decimal(38,0)"),
    "string, large_string, string_view": (pa.string_view(), "string"),
    "binary, large_binary, binary_view": (pa.large_binary(), "binary"),
    "date32, date64": (pa.date64(), "date"),
    "timestamp(s | ms | us, tz)": (pa.timestamp("s", "Europe/Berlin"), "timestamp"),
    "timestamp(s | ms | us)": (pa.timestamp("ms"), "timestamp_ntz"),
    "list, large_list": (pa.large_list(pa.int8()), "array"),
    "struct": (pa.struct([pa.field("a", pa.large_string(), nullable=False)]), "struct"),
    "map": (pa.map_(pa.string(), pa.struct([("x", pa.list_(pa.date64()))])), "map"),
}
REFUSED = {
    "uint8": [pa.uint8()],
    "uint16": [pa.uint16()],
    "uint32": [pa.uint32()],
    "uint64": [pa.uint64()],
    "float16": [pa.float16()],
    "fixed_size_binary(n)": [pa.binary(16)],
    "time32, time64": [pa.time32("s"), pa.time64("us")],
    "timestamp(ns, ...)": [pa.timestamp("ns"), pa.timestamp("ns", "UTC")],
    "duration, interval": [pa.duration("us"), pa.month_day_nano_interval()],
    "dictionary": [pa.dictionary(pa.int32(), pa.string())],
    "run_end_encoded": [pa.run_end_encoded(pa.int32(), pa.string())],
    "fixed_size_list": [pa.list_(pa.float32(), 3)],
    "list_view, large_list_view": [pa.list_view(pa.int8()), pa.large_list_view(pa.int8())],
    "null": [pa.null()],
    "extension, union": [pa.uuid(), pa.sparse_union([pa.field("a", pa.int8())])],
}
NOTES = {arrow: note for arrow, _, note in TYPE_TABLE}


def test_the_table_has_every_case_and_no_other():
    assert {arrow for arrow, delta, _ in TYPE_TABLE if delta != "refused"} == KEPT.keys()
    assert {arrow for arrow, delta, _ in TYPE_TABLE if delta == "refused"} == REFUSED.keys()


@pytest.mark.parametrize("arrow", KEPT)
def test_a_kept_type_becomes_what_the_table_says(lake, arrow):
    kind, delta = KEPT[arrow]
    schema = pa.schema([("id", pa.int64()), ("c", kind)])
    created = lake.create(schema)
    assert created.schema == delta_schema(schema), "deltalake gives another type back"
    found = json.loads(DeltaTable(lake.uri).schema().to_json())["fields"][1]["type"]
    assert (found["type"] if isinstance(found, dict) else found) == delta
    assert lake.create(schema) == created, "creating it again is not idempotent"


@pytest.mark.parametrize(("arrow", "kind"), [(arrow, kind) for arrow, kinds in REFUSED.items() for kind in kinds])
def test_a_refused_type_is_refused_with_advice_at_every_level(lake, arrow, kind):
    for nested in (kind, pa.list_(kind), pa.struct([("x", kind)]), pa.map_(pa.string(), kind)):
        with pytest.raises(UnsupportedType) as caught:
            lake.create(pa.schema([("id", pa.int64()), ("c", nested)]))
        assert caught.value.fix == NOTES[arrow]
    assert lake.storage.catalog().list_tables() == []


@pytest.mark.parametrize("kind", [pa.decimal128(5, -2), pa.decimal256(39, 0), pa.struct([]), pa.decimal128(5, 6)])
def test_odd_cases_of_kept_types_are_refused(kind):
    with pytest.raises(UnsupportedType):
        delta_schema(pa.schema([("c", kind)]))


@pytest.mark.parametrize("character", " ,;{}()\n\t=")
def test_names_that_jvm_readers_refuse_are_refused(character):
    for schema in (
        pa.schema([(f"a{character}b", pa.int8())]),
        pa.schema([("s", pa.struct([(f"a{character}b", pa.int8())]))]),
    ):
        with pytest.raises(UnsupportedType, match="name"):
            delta_schema(schema)


def test_names_in_other_alphabets_and_with_dots_are_kept(lake):
    schema = pa.schema([("größe.cm", pa.int64()), ("列", pa.string()), ("a-b/c%20", pa.int64())])
    lake.create(schema)
    data = pa.table({"größe.cm": [1], "列": ["x"], "a-b/c%20": [2]})
    lake.append(data)
    assert lake.read() == data
    assert DeltaTable(lake.uri).to_pyarrow_table() == data


def test_zone_less_timestamps_ask_for_their_feature_also_when_added(lake, support):
    lake.create()
    protocol = DeltaTable(lake.uri).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("at", pa.timestamp("ms")))])
    protocol = DeltaTable(lake.uri).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ["timestampNtz"]
    lake.append(pa.table({"id": [1], "at": pa.array([1_500], pa.timestamp("ms"))}))
    assert lake.read()["at"].cast(pa.int64()).to_pylist() == [1_500_000]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_tables_with_features_name_that_of_not_null_columns(lake, support, nested, added):
    """Else delta-spark refuses the whole table (tests/interop/jvm/test_values.py, `local`)."""
    field = pa.field("id", pa.int64(), nullable=False)
    kept = pa.field("s", pa.struct([field])) if nested else field
    at = pa.field("at", pa.timestamp("us"))
    lake.create(pa.schema([kept] if added else [kept, at]))
    if added:
        lake.storage.catalog().alter_table(support.PATH, [AddColumn(at)])
    assert set(DeltaTable(lake.uri).protocol().writer_features) == {"timestampNtz", "invariants"}
    version = DeltaTable(lake.uri).version()
    lake.create(pa.schema([kept, at]))
    assert DeltaTable(lake.uri).version() == version
    lake.append(
        pa.table({kept.name: [{"id": 1} if nested else 1], "at": pa.array([1], at.type)}, pa.schema([kept, at]))
    )
    assert lake.read().num_rows == 1


def test_a_table_whose_creator_died_gets_the_feature_of_its_not_null_columns(lake):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", pa.timestamp("us"))])
    DeltaTable.create(lake.uri, schema)
    assert DeltaTable(lake.uri).protocol().writer_features == ["timestampNtz"]
    lake.create(schema)
    assert "invariants" in DeltaTable(lake.uri).protocol().writer_features
