"""The table of types against what pylance really does."""

from __future__ import annotations

import datetime
from decimal import Decimal

import lance
import pyarrow as pa
import pytest

from laketier.spi import IncompatibleData, TableDescriptor, TablePath, UnsupportedType
from laketier_lance.options import DataStorageVersion
from laketier_lance.types import TYPE_TABLE

DAY = datetime.date(2026, 11, 21)
ONE = Decimal("1.23")
INTS = pa.list_(pa.int32())
VECTOR = pa.list_(pa.float32(), 2)

# Arrow type → three values that must come back: a plain one, null, an edge.
KEPT: dict[pa.DataType, list] = {
    pa.null(): [None, None, None],
    pa.bool_(): [True, None, False],
    **{t: [-(2 ** (t.bit_width - 1)), None, 1] for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{t: [2**t.bit_width - 1, None, 0] for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    **{t: [1.5, None, float("-inf")] for t in (pa.float16(), pa.float32(), pa.float64())},
    pa.decimal128(38, 2): [ONE, None, Decimal("-9" * 0 + "9" * 36 + ".99")],
    pa.decimal256(60, 2): [ONE, None, Decimal("9" * 58 + ".99")],
    pa.string(): ["a", None, ""],
    pa.large_string(): ["a", None, ""],
    pa.binary(): [b"a", None, b""],
    pa.large_binary(): [b"a", None, b""],
    pa.binary(4): [b"abcd", None, b"\0\0\0\0"],
    pa.date32(): [DAY, None, datetime.date(1, 1, 1)],
    pa.date64(): [DAY, None, datetime.date(1, 1, 1)],
    pa.time32("s"): [1, None, 86399],
    pa.time32("ms"): [1, None, 86399],
    pa.time64("us"): [1, None, 86399],
    pa.time64("ns"): [1000, None, 86399000],
    **{pa.timestamp(u, z): [-1000, None, 2**30 * 1000 // 1000] for u in ("s", "ms", "us", "ns") for z in (None, "UTC")},
    pa.timestamp("us", "Europe/Berlin"): [-1, None, 2**40],
    pa.timestamp("us", "+02:00"): [-1, None, 2**40],
    **{pa.duration(u): [-1000, None, 2**30] for u in ("s", "ms", "us", "ns")},
    INTS: [[1, None], None, []],
    pa.large_list(pa.int32()): [[1, None], None, []],
    pa.list_(INTS): [[[1], None, []], None, []],
    pa.list_(VECTOR): [[[1, 2], None], None, []],
    pa.list_(pa.field("element", pa.int32(), nullable=False)): [[1], None, []],
    VECTOR: [[1, 2], None, [3, None]],
    pa.list_(pa.float16(), 2): [[1, 2], None, [3, 4]],
    pa.list_(pa.uint8(), 2): [[1, 2], None, [3, 4]],
    pa.list_(pa.bool_(), 2): [[True, False], None, [True, True]],
    pa.list_(pa.date32(), 2): [[DAY, DAY], None, [DAY, DAY]],
    pa.list_(pa.decimal128(10, 2), 2): [[ONE, ONE], None, [ONE, ONE]],
    pa.list_(pa.timestamp("us"), 2): [[1, 2], None, [1, 2]],
    pa.list_(pa.duration("us"), 2): [[1, 2], None, [1, 2]],
    pa.list_(pa.time64("us"), 2): [[1, 2], None, [1, 2]],
    pa.list_(VECTOR, 2): [[[1, 2], [3, 4]], None, [[1, 2], [3, 4]]],
    pa.uuid(): [b"0" * 16, None, b"1" * 16],
}
KEPT_SINCE_2_1: dict[pa.DataType, list] = {
    pa.struct([("x", pa.int32()), ("y", pa.string())]): [{"x": 1, "y": None}, None, {"x": None, "y": None}],
    pa.struct([pa.field("x", pa.int32(), nullable=False)]): [{"x": 1}, None, {"x": 2}],
    pa.struct([("s", pa.struct([("x", pa.int32())]))]): [{"s": None}, None, {"s": {"x": None}}],
    pa.struct([("s", VECTOR)]): [{"s": None}, None, {"s": [1, 2]}],
    pa.struct([("s", pa.bool_()), ("n", pa.null())]): [{"s": None, "n": None}, None, {"s": True, "n": None}],
    pa.list_(pa.struct([("x", pa.int32())])): [[{"x": 1}, None], None, []],
}
KEPT_SINCE_2_2: dict[pa.DataType, list] = {
    pa.map_(pa.string(), pa.int32()): [[("k", 1), ("j", None)], None, []],
    pa.map_(pa.int32(), pa.struct([("x", INTS)])): [[(1, {"x": [1]}), (2, None)], None, []],
    pa.map_(pa.int32(), pa.map_(pa.int32(), VECTOR)): [[(1, [(1, [1, 2])]), (2, None)], None, []],
    pa.list_(pa.map_(pa.string(), pa.int32())): [[[("k", 1)], None], None, []],
}
REFUSED: list[pa.DataType] = [
    pa.decimal32(5, 2),
    pa.decimal64(12, 2),
    pa.string_view(),
    pa.binary_view(),
    pa.month_day_nano_interval(),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.int32()),
    pa.list_(pa.string(), 2),
    pa.list_(pa.binary(4), 2),
    pa.list_(pa.struct([("x", pa.int32())]), 2),
    pa.list_(INTS, 2),
    pa.list_(pa.float32(), 0),
    pa.list_(pa.list_(pa.float32(), 0), 2),
    pa.list_(pa.list_(pa.list_(pa.float32(), 0), 1), 2),
    pa.struct([]),
    pa.map_(pa.string(), pa.int32(), keys_sorted=True),
    pa.dictionary(pa.int32(), pa.string()),
    pa.run_end_encoded(pa.int32(), pa.int32()),
    pa.json_(),
    pa.bool8(),
    pa.fixed_shape_tensor(pa.float32(), [2]),
    pa.struct([("x", pa.list_(pa.struct([("y", pa.string_view())])))]),
]


def round_trip(make_table, version, types):
    fields = [pa.field(f"c{i}", kind) for i, kind in enumerate(types)]
    schema = pa.schema([pa.field("id", pa.int64()), *fields])
    table = make_table(schema, data_storage_version=DataStorageVersion(version))
    columns = [pa.array(values, kind) for kind, values in types.items()]
    rows = pa.record_batch([pa.array([1, 2, 3]), *columns], schema=schema)
    table.round(0).commit([table.stage(rows)])
    return table, pa.Table.from_batches([rows])


@pytest.mark.parametrize(
    ("version", "types"),
    [
        ("2.0", KEPT),
        ("2.1", KEPT | KEPT_SINCE_2_1),
        ("2.2", KEPT | KEPT_SINCE_2_1 | KEPT_SINCE_2_2),
    ],
)
def test_what_the_table_of_types_keeps_comes_back_equal(make_table, version, types):
    table, rows = round_trip(make_table, version, types)
    dataset = table.open()
    assert dataset.data_storage_version == version
    for read in (dataset.to_table(), table.scan()):
        assert read.schema.remove_metadata().equals(rows.schema)
        assert read.equals(rows)
    dataset.validate()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fragments_are_described_as_lance_describes_its_own(make_table, version):
    types = KEPT | {"2.0": {}, "2.1": KEPT_SINCE_2_1, "2.2": KEPT_SINCE_2_1 | KEPT_SINCE_2_2}[version]
    if version == "2.0":
        types = types | {pa.struct([("x", INTS), ("y", pa.string())]): [{"x": [1], "y": "a"}] * 3}
    table, rows = round_trip(make_table, version, types)
    lance.write_dataset(rows.replace_schema_metadata(None), table.location, mode="append")
    ours, theirs = [fragment.metadata.files[0] for fragment in table.open().get_fragments()]
    assert (ours.fields, ours.column_indices) == (theirs.fields, theirs.column_indices)
    assert (ours.file_major_version, ours.file_minor_version) == (theirs.file_major_version, theirs.file_minor_version)
    assert table.open().to_table().slice(3).equals(table.open().to_table().slice(0, 3))


@pytest.mark.parametrize("kind", REFUSED, ids=str)
def test_what_lance_can_not_hold_is_refused_at_create_with_advice(table, kind):
    with pytest.raises(UnsupportedType) as refusal:
        table.storage.catalog().create_table(TablePath("db", "new"), TableDescriptor(pa.schema([("c", kind)])))
    assert refusal.value.fix
    assert table.storage.catalog().list_tables() == [table.path]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_maps_need_a_newer_file_format(make_table, version):
    with pytest.raises(UnsupportedType, match=r"2\.2"):
        make_table(
            pa.schema([("m", pa.map_(pa.string(), pa.int32()))]), data_storage_version=DataStorageVersion(version)
        )


def test_a_null_struct_in_the_old_file_format_is_refused_and_not_changed(make_table):
    schema = pa.schema([("s", pa.struct([("x", pa.int32())]))])
    table = make_table(schema, data_storage_version=DataStorageVersion.V2_0)
    with pytest.raises(IncompatibleData, match=r"2\.1 or newer"):
        table.stage(pa.RecordBatch.from_pylist([{"s": {"x": 1}}, {"s": None}], schema=schema))


COMPUTED = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")


@pytest.mark.parametrize("name", ["a.b", "`a`", "a`b", *COMPUTED, "_distance", "_score", ""])
def test_names_that_lance_refuses_are_refused_at_create(table, name):
    descriptor = TableDescriptor(pa.schema([(name, pa.int32())]))
    with pytest.raises(UnsupportedType, match="name of a column"):
        table.storage.catalog().create_table(TablePath("db", "new"), descriptor)


def test_a_vector_of_strings_still_breaks_lance(tmp_path):
    # The reason for the refusal, seen in a process of its own: Lance panics. If this fails, Lance was mended.
    vectors = pa.table({"c": pa.array([["a", "b"], None], pa.list_(pa.string(), 2))})
    with pytest.raises(BaseException, match="compute_stat"):
        lance.write_dataset(vectors, tmp_path / "x.lance")


def test_the_documented_table_names_each_kind_once():
    names = [arrow for arrow, _, _ in TYPE_TABLE]
    assert len(names) == len(set(names))
    assert all(note for _, lance_type, note in TYPE_TABLE if lance_type == "refused")
