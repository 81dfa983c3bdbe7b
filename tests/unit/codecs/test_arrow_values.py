"""Arrow's own streams and files: of every type, from every writer, and forged ones."""

from __future__ import annotations

import datetime
import decimal
import io
import struct
from typing import Any

import polars
import pyarrow as pa
import pytest

from laketier.codecs.arrow_ipc import ipc_file
from laketier.codecs.arrow_sizes import expanded_bytes
from laketier.codecs.arrow_values import ArrowDecoder
from laketier.codecs.decoding import BadValue

DAY = datetime.date(2024, 5, 1)
TEXTS = ["a", None, "x" * 30, ""]
BYTES = [b"ab", None, b"cd", b"  "]


def encoded(values: pa.Array) -> pa.Array:
    return values.dictionary_encode()


def lists(items: pa.Array, make: Any = pa.ListArray) -> pa.Array:
    return make.from_arrays(pa.array([0, 1, 1, 3, 4], make.from_arrays([0], items[:0]).offsets.type), items)


COLUMNS: list[pa.Array] = [
    pa.nulls(4),
    pa.array([True, None, False, True]),
    *(pa.array([1, None, 3, 4], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *(pa.array([1, None, 3, 4], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    *(pa.array([1.5, None, 3, 4], kind) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *(
        pa.array([decimal.Decimal("1.5"), None, decimal.Decimal(2), decimal.Decimal(0)], kind)
        for kind in (pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(20, 2), pa.decimal256(50, 2))
    ),
    *(pa.array([DAY, None, DAY, DAY], kind) for kind in (pa.date32(), pa.date64())),
    *(pa.array([datetime.time(1), None] * 2, kind) for kind in (pa.time32("ms"), pa.time64("us"))),
    *(pa.array([1, None, 3, 4], kind) for kind in (pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("s"))),
    pa.array([pa.MonthDayNano([1, 2, 3]), None] * 2),
    *(pa.array(TEXTS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *(pa.array(BYTES, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))),
    pa.array([b""] * 4, pa.binary(0)),
    lists(pa.array(TEXTS)),
    lists(pa.array(TEXTS), pa.LargeListArray),
    lists(encoded(pa.array(TEXTS))),
    lists(pa.array(TEXTS, pa.string_view())),
    lists(pa.nulls(4)),
    pa.array([["a"], None, [], ["b", None]], pa.list_view(pa.string())),
    pa.array([["a"], None, [], ["b", None]], pa.large_list_view(pa.string())),
    pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int32(), 2)),
    pa.FixedSizeListArray.from_arrays(encoded(pa.array(["a", "b"] * 4)), 2),
    pa.array([[]] * 4, pa.list_(pa.int32(), 0)),
    pa.array([{"x": "a", "y": 1}, None, {"x": "b", "y": None}, {"x": None, "y": 4}]),
    pa.StructArray.from_arrays([encoded(pa.array(TEXTS))], ["x"]),
    pa.array([{}] * 4, pa.struct([])),
    pa.array([[("a", 1)], None, [], [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int64())),
    pa.MapArray.from_arrays(
        pa.array([0, 1, 1, 3, 4], pa.int32()), encoded(pa.array(list("abcd"))), encoded(pa.array(TEXTS))
    ),
    pa.array([[("a", [("b", "c")])], None, [], []], pa.map_(pa.string(), pa.map_(pa.string(), pa.string()))),
    encoded(pa.array(TEXTS)),
    encoded(pa.array(BYTES, pa.binary(2))),
    encoded(pa.array([1, None, 3, 4])),
    pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.int8()), pa.array([["a"], ["b", "c"]])),
    pa.DictionaryArray.from_arrays(pa.array([None] * 4, pa.int8()), pa.array([], pa.string())),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", None])),
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int16()), pa.array(["a", None])),
    pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int64()), pa.array([1, 2])),
    pa.UnionArray.from_dense(
        pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
    pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(TEXTS)]),
    pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16, None] * 2, pa.binary(16))),
    pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None] * 2)),
    pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None] * 2, pa.int8())),
]
NAMES = [str(column.type).replace("\n", " ") for column in COLUMNS]


def ipc(table: pa.Table, make: Any = pa.ipc.new_stream, **options: Any) -> bytes:
    sink = io.BytesIO()
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("column", COLUMNS, ids=NAMES)
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_every_type_is_read(column: pa.Array, compression: str | None) -> None:
    for part in (column, column[1:3], column[:0], pa.concat_arrays([column] * 3)[2:7]):
        table = pa.table({"v": part})
        for make in (pa.ipc.new_stream, pa.ipc.new_file):
            value = ipc(table, make, compression=compression)
            found = ArrowDecoder(table.schema).decode([value])
            assert not found.bad
            assert found.rows.to_pylist() == table.to_pylist()
            assert [batch.num_rows for batch in ipc_file(io.BytesIO(value), len(value))] == [len(part)] * bool(part)


@pytest.mark.parametrize("column", COLUMNS, ids=NAMES)
def test_the_size_of_a_part_is_that_of_its_values(column: pa.Array) -> None:
    """Where an array may stand for more than its bytes; a place of 8 bytes for each value beside them."""
    many = pa.concat_arrays([column] * 3)
    parts = [expanded_bytes(many[at : at + 1]) for at in range(len(many))]
    assert expanded_bytes(many) == sum(parts)
    assert expanded_bytes(many[2:9]) == sum(parts[2:9])


def test_what_stands_for_more_is_counted() -> None:
    texts, indices = pa.array(["x" * 1_000, "y"]), pa.array([0, None, 0, 1], pa.int8())
    for values in (texts, pa.array([b"x" * 1_000] * 2, pa.binary(1_000))):
        column = pa.DictionaryArray.from_arrays(indices, values)
        nested = [
            lists(column),
            pa.StructArray.from_arrays([column], ["x"]),
            pa.FixedSizeListArray.from_arrays(column, 2),
        ]
        nested.append(pa.MapArray.from_arrays(pa.array([0, 4], pa.int32()), pa.array(list("abcd")), column))
        for one in (column, *nested, pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), column)):
            assert expanded_bytes(one) >= 2_000
    assert expanded_bytes(pa.array(["x" * 1_000] * 9)) == 0, "its own buffers hold it"


@pytest.mark.parametrize("column", [one for one in COLUMNS if "union" in str(one.type) or "run_end" in str(one.type)])
def test_what_no_table_has_is_a_bad_record(column: pa.Array) -> None:
    found = ArrowDecoder(pa.schema([("v", pa.string())])).decode([ipc(pa.table({"v": column}))])
    assert "and the table's is string" in found.bad[0].error


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([b"x" * 3_000_000], pa.binary(3_000_000)), pa.binary()),
        (pa.array(["x" * 3_000_000]), pa.string()),
        (pa.array([["x"] * 100_000]), pa.list_(pa.string())),
    ],
    ids=["fixed_size_binary", "string", "list"],
)
def test_a_dictionary_that_stands_for_too_much_is_a_bad_record(values: pa.Array, kind: pa.DataType) -> None:
    many = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int16()), values)
    found = ArrowDecoder(pa.schema([("v", kind)])).decode([ipc(pa.table({"v": many}), compression="zstd")])
    assert found.bad[0].error == "its rows expand beyond bounds"


def test_lists_of_no_bytes_are_bounded() -> None:
    many = pa.FixedSizeListArray.from_arrays(pa.nulls(2**31 - 1), 2**31 - 1)
    found = ArrowDecoder(pa.schema([("v", pa.list_(pa.int64()))])).decode([ipc(pa.table({"v": many}))])
    assert found.bad[0].error == "its rows expand beyond bounds"


def test_a_value_needs_no_mark_of_its_end() -> None:
    table = pa.table({"v": [1, 2]})
    value, mark = ipc(table)[:-8], ipc(table)[-8:]
    assert mark == b"\xff" * 4 + b"\0" * 4
    assert ArrowDecoder(table.schema).decode([value]).rows.to_pylist() == table.to_pylist()
    with pytest.raises(BadValue, match="no mark of its end"):
        list(ipc_file(io.BytesIO(value), len(value)))
    assert ArrowDecoder(table.schema).decode([value[:-1], value[:-70]]).rows.num_rows == 0


def padded(data: bytes, by: int) -> bytes:
    """An Arrow file, with so many zeros more behind its magic: arrow-rs aligns messages to 64 bytes."""
    length = struct.unpack("<i", data[-10:-6])[0]
    footer = bytearray(data[-10 - length : -10])
    for at in range(length - 24):
        offset, size, body = struct.unpack_from("<qi4xq", footer, at)
        if 0 < offset < len(data) and 0 < size < 1_000 and body and data[offset : offset + 4] == b"\xff" * 4:
            struct.pack_into("<q", footer, at, offset + by)
    return data[:8] + b"\0" * by + data[8 : -10 - length] + bytes(footer) + data[-10:]


@pytest.mark.parametrize("by", [0, 8, 24, 56])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_files_messages_begin_where_its_writer_aligns_them(by: int, legacy: bool) -> None:
    table = pa.table({"v": list(range(300))})
    data = ipc(table, pa.ipc.new_file, use_legacy_format=legacy)
    data = padded(data, by) if not legacy else data[:8] + b"\0" * by + data[8:]
    if not legacy:
        assert pa.ipc.open_file(data).read_all().equals(table)
    assert next(iter(ipc_file(io.BytesIO(data), len(data)))).equals(table.to_batches()[0])


@pytest.mark.parametrize("lost", [1, 9, 100, 300])
def test_a_file_that_is_cut_off_is_refused(lost: int) -> None:
    data = ipc(pa.table({"v": list(range(300))}), pa.ipc.new_file)[:-lost]
    with pytest.raises(BadValue, match="cut off"):
        list(ipc_file(io.BytesIO(data), len(data)))


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_what_was_joined_to_another_is_refused(new: Any) -> None:
    """Arrow reads the first alone, and the rows of the others would be lost without a word."""
    data = ipc(pa.table({"v": [1]}), new)
    with pytest.raises(BadValue, match="bytes follow the mark of its end, as where several were joined"):
        list(ipc_file(io.BytesIO(2 * data), 2 * len(data)))


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_writer_that_was_closed_again_joined_nothing(new: Any) -> None:
    """By hand within a block that closes it as well: pyarrow writes the mark of the end, and the footer, each time."""
    table, sink = pa.table({"v": [1]}), pa.BufferOutputStream()
    with new(sink, table.schema) as writer:
        writer.write_table(table)
        writer.close()
    writer.close()
    data = sink.getvalue().to_pybytes()
    assert len(data) > len(ipc(table, new))
    assert [batch.num_rows for batch in ipc_file(io.BytesIO(data), len(data))] == [1]
    with pytest.raises(BadValue, match="bytes follow the mark of its end"):
        list(ipc_file(io.BytesIO(2 * data), 2 * len(data)))


def test_zeros_behind_a_stream_are_no_other_one() -> None:
    data = ipc(pa.table({"v": [1]}), pa.ipc.new_stream) + b"\0" * 56
    assert [batch.num_rows for batch in ipc_file(io.BytesIO(data), len(data))] == [1]


def test_a_file_without_a_mark_of_its_end_has_a_footer_that_tells_it() -> None:
    data = ipc(pa.table({"v": [1]}), pa.ipc.new_file)
    length = struct.unpack("<i", data[-10:-6])[0]
    end = len(data) - 10 - length - 8
    assert data[end : end + 8] == b"\xff" * 4 + b"\0" * 4
    unmarked = data[:end] + data[end + 8 :]
    assert [batch.num_rows for batch in ipc_file(io.BytesIO(unmarked), len(unmarked))] == [1]


@pytest.mark.parametrize("rows", [0, 3, 1000])
@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"record_batch_size": 100}], ids=str)
def test_a_file_whose_schema_has_no_length_is_read(rows: int, options: dict[str, Any]) -> None:
    """As Polars writes it; Arrow takes the schema of the footer."""
    sink = io.BytesIO()
    polars.DataFrame({"id": range(rows), "text": ["x"] * rows}).write_ipc(sink, **options)
    data = sink.getvalue()
    wanted = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    found = list(ipc_file(io.BytesIO(data), len(data)))
    assert pa.Table.from_batches(found, wanted.schema).equals(wanted)


def test_damage_of_a_schema_without_a_length_is_no_other_row() -> None:
    sink = io.BytesIO()
    polars.DataFrame({"id": [1]}).write_ipc(sink)
    for place in range(8, 40):
        data = bytearray(sink.getvalue())
        data[place] ^= 0xFF
        try:
            found = list(ipc_file(io.BytesIO(bytes(data)), len(data)))
        except (BadValue, pa.ArrowInvalid, OSError):
            continue
        assert [batch.to_pylist() for batch in found] == [[{"id": 1}]]


def test_dictionaries_behind_their_rows_are_refused_with_a_way_out() -> None:
    sink = io.BytesIO()
    polars.DataFrame({"c": ["a", "b"]}, schema={"c": polars.Categorical}).write_ipc(sink)
    with pytest.raises(BadValue, match=r"its dictionaries lie behind its rows.*write it by write_ipc_stream"):
        list(ipc_file(io.BytesIO(sink.getvalue()), len(sink.getvalue())))
