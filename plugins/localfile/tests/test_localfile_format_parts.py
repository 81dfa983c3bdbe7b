"""What the parts of the file formats make of values, lines and bytes, value by value: nothing here makes a table."""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.codecs import expansion
from laketier.codecs.decoding import BadValue
from laketier.spi import ConfigError, CorruptTable, IncompatibleData, UnsupportedType
from laketier_localfile import source
from laketier_localfile.file_formats import (
    arrow_ipc,
    csv,
    foreign_lines,
    json_lines,
    json_text,
    plain_types,
    scalars,
    text_file,
    vortex,
    whole,
)
from laketier_localfile.file_formats.interface import Wanted
from laketier_localfile.file_formats.known import KNOWN, file_format, of_name
from laketier_localfile.options import ArrowCompression, LocalFileOptions, TextCompression
from laketier_localfile.parquet import column_stats, details, has_bounds
from laketier_localfile.stretch import Stretch
from laketier_localfile.types import check_types


def file_of(data: bytes) -> pa.NativeFile:
    return pa.PythonFile(io.BytesIO(data), "r")


# -- values as text ----------------------------------------------------------------------------------------------------

MOMENT = datetime(2026, 1, 2, 3, 4, 5)
TEXTS: list[tuple[pa.DataType, Any, str]] = [
    (pa.string(), "é", "é"),
    (pa.large_string(), "a", "a"),
    (pa.string_view(), "a", "a"),
    (pa.binary(), b"\0\xff", "AP8="),
    (pa.large_binary(), b"\0\xff", "AP8="),
    (pa.binary_view(), b"\0\xff", "AP8="),
    (pa.binary(2), b"\0\xff", "AP8="),
    (pa.bool_(), True, "true"),
    (pa.int8(), -5, "-5"),
    (pa.uint64(), 2**64 - 1, "18446744073709551615"),
    (pa.float16(), 0.5, "0.5"),
    (pa.float32(), 0.1, "0.1"),
    (pa.float64(), -0.0, "-0.0"),
    (pa.float64(), 0.0, "0"),
    (pa.float64(), float("inf"), "Infinity"),
    (pa.float64(), float("-inf"), "-Infinity"),
    (pa.float32(), float("nan"), "NaN"),
    (pa.decimal128(9, 2), Decimal("1.50"), "1.50"),
    (pa.decimal256(30, 0), Decimal(7), "7"),
    (pa.date32(), date(1, 1, 1), "0001-01-01"),
    (pa.date32(), date(9999, 12, 31), "9999-12-31"),
    (pa.time32("s"), time(1, 2, 3), "01:02:03"),
    (pa.time64("us"), time(1, 2, 3, 4), "01:02:03.000004"),
    (pa.timestamp("s"), MOMENT, "2026-01-02T03:04:05"),
    (pa.timestamp("us"), MOMENT, "2026-01-02T03:04:05.000000"),
    (pa.timestamp("ms", "UTC"), MOMENT, "2026-01-02T03:04:05.000Z"),
    (pa.timestamp("us", "Europe/Berlin"), MOMENT, "2026-01-02T03:04:05.000000Z"),
    (pa.timestamp("ns"), MOMENT, "2026-01-02T03:04:05.000000000"),
]


@pytest.mark.parametrize(("kind", "value", "text"), TEXTS, ids=lambda each: str(each)[:20])
def test_a_value_as_text_and_back(kind: pa.DataType, value: Any, text: str) -> None:
    naive = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
    array = (
        pa.array([value, None], naive).cast(kind) if naive.equals(kind) else pa.array([value, None], naive).view(kind)
    )
    found = scalars.text_of(array, "c")
    assert found.to_pylist() == [text, None]
    read = found.cast(pa.string())
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        read = array if pa.types.is_boolean(kind) else array.cast(pa.float64())
    back = scalars.values_of(read, kind)
    assert back.type.equals(kind)
    assert str(back) == str(array)
    assert scalars.values_of(array, kind) is array


def test_what_is_what() -> None:
    kinds = {
        "text": [pa.string(), pa.large_string(), pa.string_view()],
        "bytes": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)],
        "number": [pa.int8(), pa.uint64(), pa.float16(), pa.float64()],
        "none": [pa.bool_(), pa.decimal128(9, 2), pa.date32(), pa.timestamp("s"), pa.list_(pa.int8())],
    }
    for name, some in kinds.items():
        for kind in some:
            told = (scalars.is_text(kind), scalars.is_bytes(kind), scalars.is_number(kind))
            assert told == (name == "text", name == "bytes", name == "number"), kind


@pytest.mark.parametrize(
    ("kind", "number", "is_fine"),
    [
        (pa.date32(), -719_162, True),
        (pa.date32(), -719_163, False),
        (pa.date32(), 2_932_896, True),
        (pa.date32(), 2_932_897, False),
        (pa.timestamp("s"), -719_162 * 86_400, True),
        (pa.timestamp("s"), -719_162 * 86_400 - 1, False),
        (pa.timestamp("s"), 2_932_897 * 86_400 - 1, True),
        (pa.timestamp("s"), 2_932_897 * 86_400, False),
        (pa.timestamp("us", "UTC"), 2_932_897 * 86_400 * 10**6 - 1, True),
        (pa.timestamp("us", "UTC"), 2_932_897 * 86_400 * 10**6, False),
        (pa.timestamp("ns"), 2**63 - 1, True),
        (pa.timestamp("ns"), -(2**63 // 10**9) * 10**9, True),
        (pa.timestamp("ns"), -(2**63 // 10**9) * 10**9 - 1, False),
    ],
    ids=str,
)
def test_days_that_text_reaches(kind: pa.DataType, number: int, is_fine: bool) -> None:
    array = pa.array([None, number], pa.int32() if pa.types.is_date32(kind) else pa.int64()).view(kind)
    if is_fine:
        scalars.text_of(array, "c")
        return
    with pytest.raises(IncompatibleData, match="column 'c' has"):
        scalars.text_of(array, "c")


def test_texts_of_bytes_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"base64|Only"):
        scalars.values_of(pa.array(["a b?"]), pa.binary())


# -- JSON --------------------------------------------------------------------------------------------------------------

NESTED = pa.struct(
    [("m", pa.map_(pa.string(), pa.int64())), ("l", pa.large_list(pa.large_binary())), ("f", pa.list_(pa.int8(), 2))]
)
ROWS = [
    {"m": [("k", 1), ("k", None)], "l": [b"\0", None], "f": [1, 2]},
    None,
    {"m": None, "l": None, "f": None},
    {"m": [], "l": [], "f": [3, None]},
]


def test_lines_of_json() -> None:
    table = pa.table({"a": pa.array(ROWS, NESTED), 'q"': ['x\\"\n\x01', None, "é", ""], "n": [1, 2, None, 4]})
    text = json_text.lines(table).to_pybytes().decode()
    assert text == (
        '{"a":{"m":[{"key":"k","value":1},{"key":"k","value":null}],"l":["AA==",null],"f":[1,2]},'
        '"q\\"":"x\\\\\\"\\u000a\\u0001","n":1}\n'
        '{"a":null,"q\\"":null,"n":2}\n'
        '{"a":{"m":null,"l":null,"f":null},"q\\"":"é","n":null}\n'
        '{"a":{"m":[],"l":[],"f":[3,null]},"q\\"":"","n":4}\n'
    )
    assert json_text.lines(table.slice(1, 2)).to_pybytes().decode() == "".join(text.splitlines(keepends=True)[1:3])


@pytest.mark.parametrize(
    "kind",
    [NESTED, pa.list_(NESTED), pa.list_(NESTED, 1), pa.map_(pa.string(), NESTED), pa.large_list(pa.float16()),
     pa.list_(pa.list_(pa.int64()), 2), pa.map_(pa.large_binary(), pa.timestamp("us", "UTC"))],
    ids=lambda kind: str(kind)[:30],
)  # fmt: skip
@pytest.mark.parametrize("with_null", [False, True])
def test_nested_values_come_back(kind: pa.DataType, with_null: bool) -> None:
    value: Any = ROWS[0]
    if pa.types.is_map(kind):
        value = [(b"k", MOMENT)] if not pa.types.is_struct(kind.item_type) else [("k", ROWS[0]), ("j", ROWS[3])]
    elif pa.types.is_large_list(kind):
        value = [0.5, None, 1.0]
    elif pa.types.is_fixed_size_list(kind):
        value = [ROWS[3]] if kind.list_size == 1 else [[1, 2], None]
    elif pa.types.is_list(kind):
        value = [ROWS[0], None, ROWS[2]]
    schema = pa.schema([("a", kind), ("b", pa.int8())])
    given = [{"a": value, "b": 1}, *([{"a": None, "b": 2}] if with_null else []), {"a": value, "b": 3}]
    table = pa.Table.from_pylist(given, schema)
    data = json_text.lines(table).to_pybytes()
    form = KNOWN["json"]
    read = list(form.read(file_of(data), "x.json", Wanted(schema, schema, 10)))
    assert pa.Table.from_batches(read, schema).to_pylist() == table.to_pylist()
    [first] = form.read(file_of(data), "x.json", Wanted(schema, schema, 1))
    assert first.num_rows == 1
    assert list(form.read(file_of(data), "x.json", Wanted(schema, schema, 0))) == []


def test_a_struct_with_two_fields_of_a_name_is_refused_wherever_it_is() -> None:
    twice = pa.struct([pa.field("x", pa.int8()), pa.field("x", pa.int8())])
    for kind, path in ((twice, "a"), (pa.list_(twice), "a.element"), (pa.struct([("s", twice)]), "a.s")):
        with pytest.raises(UnsupportedType, match=f"column '{path}' has two fields named"):
            json_lines.JsonLines().check_types(pa.schema([("a", kind)]))
    json_lines.JsonLines().check_types(pa.schema([("a", pa.map_(pa.int8(), pa.int8()))]))


# -- lines in blocks ---------------------------------------------------------------------------------------------------

texts = st.text(st.sampled_from('a",\n'), max_size=40)


@given(texts, st.integers(1, 7), st.booleans())
def test_blocks_are_whole_records(text: str, size: int, quotes: bool) -> None:
    if quotes and text.count('"') % 2:
        text += '"'
    data = f"{text}\n".encode()
    before = text_file._BLOCK
    text_file._BLOCK = size
    try:
        blocks = list(text_file.text_blocks(file_of(data), "x.csv", quotes=quotes))
    finally:
        text_file._BLOCK = before
    assert b"".join(blocks) == data
    for block in blocks:
        assert block.endswith(b"\n")
        assert not quotes or block.count(b'"') % 2 == 0


@pytest.mark.parametrize("quotes", [False, True])
@pytest.mark.parametrize("data", [b"a", b'1\n"', b"1\n2", b'1\n"2\n'])
def test_lines_that_are_cut_off(data: bytes, quotes: bool) -> None:
    if not quotes and data.endswith(b"\n"):
        assert list(text_file.text_blocks(file_of(data), "x.json")) == [data]
        return
    with pytest.raises(CorruptTable, match="its end is cut off"):
        list(text_file.text_blocks(file_of(data), "x.csv", quotes=quotes))


@pytest.mark.parametrize(
    ("chunk", "is_open", "end", "after"),
    [
        (b"a\nb", False, 1, 0),
        (b"\nb", False, 0, 0),
        (b'\n"', False, 0, 1),
        (b'"\n"', False, -1, 2),
        (b'"\n', True, 1, 0),
        (b'a\n"b\n"c', False, 1, 2),
        (b'a\n"b\nc', False, 1, 1),
        (b'\n"\n"\n"', False, 4, 1),
        (b"abc", False, -1, 0),
    ],
)
def test_the_end_of_the_last_whole_record(chunk: bytes, is_open: bool, end: int, after: int) -> None:
    assert text_file._end_of_record(chunk, is_open) == (end, after)


@pytest.mark.parametrize("compression", TextCompression)
@pytest.mark.parametrize("level", [None, 1])
def test_lines_through_a_codec(compression: TextCompression, level: int | None) -> None:
    options = LocalFileOptions(text_compression=compression, compression_level=level)
    name = text_file.suffix_of(".csv", options)
    assert name == {"none": ".csv", "gzip": ".csv.gz", "zstd": ".csv.zst"}[compression.value]
    sink = pa.BufferOutputStream()
    table = pa.table({"a": ["x", None, "z" * 50], "b": [1, 2, 3]})
    file = KNOWN["csv"].opener(options)(sink, table.schema)
    file.write(table)
    described = file.close()
    data = sink.getvalue().to_pybytes()
    assert described.digest == whole.whole_digest(file_of(data), len(data))
    assert b"".join(text_file.text_blocks(file_of(data), name)) == b'"a","b"\n"x",1\n,2\n"%s",3\n' % (b"z" * 50)
    squeeze = text_file.squeeze_of(options)
    assert (squeeze is None) is (compression is TextCompression.NONE)
    if compression is TextCompression.NONE:
        text_file.check_plain("csv", options)
    else:
        with pytest.raises(ConfigError, match=f"csv with {compression.value} can't stay open"):
            text_file.check_plain("csv", options)


def test_a_growing_text_says_where_its_rows_begin() -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("a", pa.int64())])
    file: Any = KNOWN["csv"].opener(LocalFileOptions())(sink, schema)
    assert (file.head, file.tell()) == (4, 4)
    file.write(pa.table({"a": [5, 3]}))
    assert file.so_far().stats == {"a": ("3", "5", 0)}
    assert file.so_far() == file.close()
    other: Any = KNOWN["json"].opener(LocalFileOptions())(pa.BufferOutputStream(), schema)
    assert (other.head, other.tell()) == (0, 0)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("whole", [True, False])
def test_a_file_that_ended_or_was_given_up_holds_nothing_open(name: str, whole: bool) -> None:
    """Writers are kept for a while after that, with their files."""
    schema = pa.schema([("a", pa.int64())])

    def written() -> Any:
        made: Any = KNOWN[name].opener(LocalFileOptions())(pa.BufferOutputStream(), schema)
        made.write(pa.table({"a": [5, 3]}))
        return made

    written().close()  # the library opens some of its own, once
    before = sorted(os.listdir("/proc/self/fd"))
    file = written()
    file.close() if whole else file.abandon()
    assert sorted(os.listdir("/proc/self/fd")) == before


# -- CSV ---------------------------------------------------------------------------------------------------------------


def test_records_of_csv() -> None:
    table = pa.table(
        {"a": ['q"', None, ""], "b": [1, None, 3], "c": [True, None, False], "d": [0.5, float("nan"), None],
         "e": pa.array([b"\0", None, b""], pa.large_binary()), "f": pa.array(["x", "y", None], pa.large_string())}
    )  # fmt: skip
    found = csv._records(table).to_pybytes()
    assert found == b'"q""",1,true,"0.5","AA==","x"\n,,,"NaN",,"y"\n"",3,false,,"",\n'


@pytest.mark.parametrize(
    ("block", "heads", "columns", "told"),
    [
        (b'"a","b"\n"x",1\n', 1, 2, [True, False]),
        (b'"x",1\n', 0, 2, [True, False]),
        (b'"a","b"\n,\n1,"y"\n', 1, 2, [False, True]),
        (b'"a","b"\n,\n', 1, 2, [False, False]),
        (b'"a"\n"x ""q"" \n,"\n', 1, 1, [True]),
    ],
)
def test_which_columns_are_in_quotes(block: bytes, heads: int, columns: int, told: list[bool]) -> None:
    assert csv._quoted(block, heads, columns) == told


def test_columns_of_a_file_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "_BLOCK", 16)
    data = b'"n","t","b"\n1,"2026-01-01",true\n2,"x",false\n,,\n3.5,"1",\n'
    found = csv._own_schema(file_of(data), "x.csv")
    assert found is not None
    assert found.names == ["n", "t", "b"]
    assert found.types == [pa.float64(), pa.string(), pa.bool_()]
    assert csv._own_schema(file_of(b'"n","t"\n'), "x.csv") is None
    assert csv._names(b'"a ""x""","b\nc"\n1,2\n') == ['a "x"', "b\nc"]


def test_csv_has_no_values_with_parts() -> None:
    for kind in (pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.int8(), pa.int8())):
        with pytest.raises(UnsupportedType, match="CSV has values without parts only"):
            csv.Csv().check_types(pa.schema([("a", pa.int8()), ("b", kind)]))
    assert csv._polars_types(pa.schema([("a", pa.decimal128(5, 2)), ("b", pa.float32()), ("c", pa.float64())])) == (
        "{'a': polars.Decimal(5, 2), 'b': polars.Float32, 'c': polars.Float64}"
    )


def test_csv_is_read_by_the_columns_that_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "_BLOCK", 8)
    data = b'"a","b"\n1,"x"\n2,"y"\n3,"z"\n'
    there = pa.schema([("b", pa.string())])
    wanted = pa.schema([("b", pa.string()), ("new", pa.int8())])
    read = list(csv.Csv().read(file_of(data), "x.csv", Wanted(wanted, there, 2)))
    assert pa.Table.from_batches(read).to_pylist() == [{"b": "x", "new": None}, {"b": "y", "new": None}]


# -- lines of others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("x.json", b'{"a":1}\n{"a":22222222222222222222', "its line 2 has more than 20 bytes"),
        ("x.json", b'[{"a":1}]\n', "it is one JSON array"),
        ("x.json", b'{\n"a":1\n}\n', "take several lines each"),
        ("x.json", b'{"a":NaN}\n', "it holds a bare NaN"),
        ("x.json", b'{"a":-Infinity}\n', "it holds a bare Infinity"),
        ("x.csv", b"a,b\n1,2\n\n3,4\n", "its line 3 is blank"),
        ("x.csv", b"a,b\n1,2\n\r\n", "its line 3 is blank"),
        ("x.csv", b"\na,b\n", "its first line is blank"),
        ("x.csv", b"a\0,b\n", "it is no UTF-8 text"),
        ("x.csv", b"a;b\n1;2\n", "parted by ';'"),
        ("x.csv", b"a\tb\n", r"parted by '\\t'"),
        ("x.csv", b"a,a\n", "a"),
    ],
)
def test_a_file_of_others_that_is_none(name: str, data: bytes, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "more than" in told:
        monkeypatch.setattr(foreign_lines, "RECORD_BYTES", 20)
    look = foreign_lines.json_schema if name.endswith("json") else foreign_lines.csv_schema
    with pytest.raises(BadValue, match=told):
        look(file_of(data), name, len(data), {})


def test_files_of_others() -> None:
    data = b'{"a":"NaN"}\n{"a":null,"b":1}\n'
    assert foreign_lines.json_schema(file_of(data), "x.json", len(data), {}) == pa.schema(
        [("a", pa.string()), ("b", pa.int64())]
    )
    nothing = (b"", b"\n\n")
    for empty in nothing:
        assert foreign_lines.json_schema(file_of(empty), "x.json", len(empty), {}) is None
    assert foreign_lines.csv_schema(file_of(b"a,b\n"), "x.csv", 4, {}) is None
    own = b'{"a":NaN}\n'
    assert foreign_lines.json_schema(file_of(own), "x.json", len(own), None, own=True) is not None
    data, schema = b"a,b\n1,x\n2,y\n", pa.schema([("b", pa.string()), ("a", pa.int64())])
    rows = list(foreign_lines.csv_rows(file_of(data), "x.csv", len(data), schema))
    assert pa.Table.from_batches(rows).to_pylist() == [{"b": "x", "a": 1}, {"b": "y", "a": 2}]
    bad = b"a\n1\nx\n"
    with pytest.raises(BadValue, match="its line 3: "):
        list(foreign_lines.csv_rows(file_of(bad), "x.csv", len(bad), pa.schema([("a", pa.int64())])))
    bad = b'{"a":1}\n{"a":Infinity}\n'
    with pytest.raises(BadValue, match="a bare Infinity"):
        list(foreign_lines.json_rows(file_of(bad), "x.json", len(bad), pa.schema([("a", pa.float64())])))


def test_a_small_file_that_becomes_very_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "EXPANSION_FROM", 1000)
    bomb = pa.Codec("zstd").compress(b'{"a":1}\n' * 1_000_000, asbytes=True)
    with pytest.raises(BadValue, match="beyond max-expansion"):
        foreign_lines.json_schema(file_of(bomb), "x.json.zst", len(bomb), {})


# -- Arrow -------------------------------------------------------------------------------------------------------------


def arrow_file(options: LocalFileOptions, table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    file = arrow_ipc.GrowingArrowFile(sink, table.schema, options=options)
    file.write(table)
    described = file.close()
    data: bytes = sink.getvalue().to_pybytes()
    assert described.digest == whole.whole_digest(file_of(data), len(data))
    return data


def test_the_codec_of_an_arrow_file_is_the_one_that_was_chosen() -> None:
    table = pa.table({"a": ["some text of some length"] * 1000})
    made = {each: arrow_file(LocalFileOptions(arrow_compression=each), table) for each in ArrowCompression}
    sizes = {each: len(data) for each, data in made.items()}
    assert sizes[ArrowCompression.NONE] > 2 * sizes[ArrowCompression.LZ4] > 2 * sizes[ArrowCompression.ZSTD]
    for data in made.values():
        assert pa.ipc.open_file(pa.BufferReader(data)).read_all().equals(table)
    levels = [LocalFileOptions(arrow_compression=ArrowCompression.ZSTD, compression_level=level) for level in (1, 19)]
    varied = pa.table({"a": [f"text {i * i % 977}" for i in range(20_000)]})
    assert len(arrow_file(levels[0], varied)) > len(arrow_file(levels[1], varied))


def test_an_arrow_file_that_is_still_open_is_read_and_ended() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    sink = pa.BufferOutputStream()
    options = LocalFileOptions()
    file = arrow_ipc.GrowingArrowFile(sink, schema, options=options)
    file.write(pa.table({"a": [1, 2], "b": ["x", "y"]}, schema=schema))
    file.write(pa.table({"a": [3], "b": ["z"]}, schema=schema))
    size = file.tell()
    assert 0 < file.head < size
    assert file.so_far().stats == {"a": ("1", "3", 0), "b": ("x", "z", 0)}
    file.close()
    so_far = sink.getvalue().to_pybytes()[:size]
    form = arrow_ipc.ArrowIpc()
    wanted = pa.schema([("b", pa.string()), ("new", pa.int8())])

    def read(rows: int) -> list[dict[str, Any]]:
        batches = form.read_open(file_of(so_far), "x.arrow", Wanted(wanted, wanted, rows))
        return [row for batch in batches for row in batch.to_pylist()]

    assert read(9) == [{"b": each, "new": None} for each in "xyz"]
    assert (len(read(2)), len(read(1)), len(read(0))) == (2, 1, 0)
    ended = pa.BufferOutputStream()
    described = form.end(file_of(so_far), ended, schema, options)
    assert described is not None
    assert described.stats == {"a": ("1", "3", 0), "b": ("x", "z", 0)}
    data = ended.getvalue().to_pybytes()
    assert pa.ipc.open_file(pa.BufferReader(data)).read_all().column("a").to_pylist() == [1, 2, 3]
    assert described.digest == whole.whole_digest(file_of(data), len(data))


def test_arrow_files_of_others_that_are_none() -> None:
    form, table = arrow_ipc.ArrowIpc(), pa.table({"a": [1, 2]})
    data = arrow_file(LocalFileOptions(), table)
    told = form.tell(file_of(data), "x.arrow", len(data), own=False, given={})
    assert told.schema == table.schema
    assert told.measured is not None
    assert told.measured.rows == 2
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    footer = bytearray(data)
    length = int.from_bytes(data[-10:-6], "little")
    footer[-10 - length : -10] = bytes(length)
    for bad, why in (
        (b"FEA1" + data, "the first version of Feather"),
        (stream.getvalue().to_pybytes(), "it is an Arrow stream"),
        (b"something else", "it is no Arrow file"),
        (bytes(footer), "its footer is damaged|footer"),
    ):
        with pytest.raises(BadValue, match=why):
            form.tell(file_of(bad), "x.arrow", len(bad), own=False, given={})


def test_the_columns_of_an_arrow_file_in_the_order_that_is_asked_for() -> None:
    data = arrow_file(LocalFileOptions(), pa.table({"a": [1], "b": [2], "c": [3]}))
    wanted = pa.schema([("c", pa.int64()), ("x", pa.int64()), ("a", pa.int64())])
    [batch] = arrow_ipc.ArrowIpc().lying_rows(file_of(data), "x.arrow", len(data), wanted)
    assert batch.to_pylist() == [{"c": 3, "a": 1}]
    [read] = arrow_ipc.ArrowIpc().read(file_of(data), "x.arrow", Wanted(wanted, wanted, 5))
    assert read.to_pylist() == [{"c": 3, "x": None, "a": 1}]
    assert list(arrow_ipc.ArrowIpc().read(file_of(data), "x.arrow", Wanted(wanted, wanted, 0))) == []


# -- digests, statistics and pieces ------------------------------------------------------------------------------------


def test_a_digest_of_all_bytes_and_one_of_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "_CHUNK", 4)
    monkeypatch.setattr(whole, "_END", 3)
    data = bytes(range(20))
    for place in range(20):
        other = bytearray(data)
        other[place] ^= 1
        one, two = (whole.whole_digest(file_of(bytes(each)), 20) for each in (data, other))
        assert one != two
        assert len(one) == whole.DIGITS
        ends = [whole.ends_digest(file_of(bytes(each)), 20) for each in (data, other)]
        assert (ends[0] != ends[1]) is (place < 3 or place >= 17)
    file = file_of(data)
    for digest in (whole.whole_digest, whole.ends_digest):
        digest(file, 20)
        assert file.tell() == 0, "it is read after that"
        with pytest.raises(CorruptTable, match="the file has 20 bytes instead of 21"):
            digest(file, 21)
    assert whole.ends_digest(file_of(b"ab"), 2) != whole.ends_digest(file_of(b"ac"), 2)
    assert whole.ends_digest(file_of(b""), 0)


_TWICE = ("2026-11-01 05:15:00", "2026-11-01 06:00:00")


def test_statistics_of_rows_that_come_bit_by_bit() -> None:
    kinds = {"a": pa.int64(), "t": pa.string(), "f": pa.float64(), "n": pa.int8(), "d": pa.timestamp("us")}
    schema = pa.schema(list(kinds.items()))
    stats = whole.RunningStats(schema)
    far = 2**62  # a moment that Python does not reach
    rows = [
        {"a": [5, None], "t": ["x" * 65, "a"], "f": [1.0, 2.0], "n": [None, None], "d": [0, 1]},
        {"a": [3, 9], "t": ["b", "c"], "f": [1.0, 2.0], "n": [None, None], "d": [far, 5]},
        {"a": [4, 4], "t": ["b", None], "f": [1.0, 2.0], "n": [None, None], "d": [7, None]},
    ]
    for each in rows:
        stats.add(pa.table({name: pa.array(values, kinds[name]) for name, values in each.items()}))
    assert stats.result() == {"a": ("3", "9", 1), "t": (None, None, 1), "n": (None, None, 6), "d": (None, None, 1)}
    # 1:15 in New York for the first time, and then 0:45 later, when its clock shows 1:00 for the second time.
    zone = pa.timestamp("us", "America/New_York")
    moments = [pa.scalar(text).cast(pa.timestamp("us")).cast(pa.int64()).as_py() for text in _TWICE]
    stats = whole.RunningStats(pa.schema([("at", zone)]))
    for moment in moments:
        stats.add(pa.table({"at": pa.array([moment], zone)}))
    assert stats.result() == {"at": (*_TWICE, 0)}
    many = whole.RunningStats(pa.schema([(f"c{i}", pa.int8()) for i in range(40)]))
    many.add(pa.table({f"c{i}": pa.array([i], pa.int8()) for i in range(40)}))
    assert list(many.result()) == [f"c{i}" for i in range(32)]


@pytest.mark.parametrize(("length", "is_kept"), [(64, True), (65, False)])
@pytest.mark.parametrize("at", ["low", "high"])
def test_a_bound_that_is_kept_has_64_characters_at_most(length: int, is_kept: bool, at: str) -> None:
    values = ["a" * length, "b"] if at == "low" else ["a", "b" * length]
    sink = pa.BufferOutputStream()
    pq.write_table(table := pa.table({"t": values}), sink)
    found = column_stats(pq.read_metadata(pa.BufferReader(sink.getvalue())), table.schema)
    running = whole.RunningStats(table.schema)
    running.add(table)
    wanted = (values[0], values[1], 0) if is_kept else (None, None, 0)
    assert found == running.result() == {"t": wanted}


def test_pieces_of_a_table() -> None:
    table = pa.table({"a": list(range(100))})
    assert [piece.num_rows for piece in whole.pieces(table, 30)] == [30, 30, 30, 10]
    assert [piece.num_rows for piece in whole.pieces(table, 1000, 400)] == [50, 50]
    assert [piece.num_rows for piece in whole.pieces(table.slice(0, 3), 1000, 1)] == [1, 1, 1]
    assert list(whole.pieces(table.slice(0, 0))) == []
    assert [piece.num_rows for piece in whole.pieces(pa.table({"n": pa.nulls(5)}))] == [5]


def test_a_file_is_measured_by_the_rows_that_it_has() -> None:
    schema = pa.schema([("a", pa.int64())])
    for data, own in ((b'{"a":1}\n{"a":7}\n', True), (b'{"a":1}\n{"a":7}\n', False)):
        found = KNOWN["json"].measure(file_of(data), "x.json", len(data), schema, own=own)
        assert (found.rows, found.described.stats) == (2, {"a": ("1", "7", 0)})
        assert found.described.digest == whole.whole_digest(file_of(data), len(data))


# -- stretches ---------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 6), st.integers(1, 5))
def test_a_stretch_has_its_bytes_and_no_other(data: bytes, one: int, two: int, head: int, size: int) -> None:
    start, end = sorted((one, two))
    stretch = Stretch(start, end, head)
    alone, rows = data[start:end], data[: min(head, end)] + data[max(start, min(head, end)) : end]
    for file, expected in ((stretch.bytes_of(file_of(data)), alone), (stretch.rows_of(file_of(data)), rows)):
        assert file.read() == expected
        assert file.seek(0, 2) == len(expected)
        file.seek(0)
        assert b"".join(iter(lambda file=file: file.read(size), b"")) == expected
        for place in range(len(expected) + 1):
            file.seek(place)
            assert file.read(size) == expected[place : place + size]
            assert file.tell() == min(place + size, len(expected))


# -- types, names and what other tools call them ----------------------------------------------------------------------

WORDS = [
    (pa.bool_(), "BOOLEAN", "BOOLEAN"), (pa.int8(), "TINYINT", "TINYINT"), (pa.int16(), "SMALLINT", "SMALLINT"),
    (pa.int32(), "INTEGER", "INT"), (pa.int64(), "BIGINT", "BIGINT"), (pa.uint8(), "UTINYINT", "SMALLINT"),
    (pa.uint16(), "USMALLINT", "INT"), (pa.uint32(), "UINTEGER", "BIGINT"), (pa.uint64(), "UBIGINT", "DECIMAL(20, 0)"),
    (pa.float16(), "FLOAT", "FLOAT"), (pa.float32(), "FLOAT", "FLOAT"), (pa.float64(), "DOUBLE", "DOUBLE"),
    (pa.date32(), "DATE", "DATE"), (pa.time64("us"), "TIME", "STRING"), (pa.string(), "VARCHAR", "STRING"),
    (pa.binary(), "VARCHAR", "BINARY"), (pa.large_binary(), "VARCHAR", "BINARY"),
    (pa.binary_view(), "VARCHAR", "BINARY"), (pa.binary(2), "VARCHAR", "BINARY"),
    (pa.decimal128(5, 2), "DECIMAL(5, 2)", "DECIMAL(5, 2)"), (pa.timestamp("us"), "TIMESTAMP", "TIMESTAMP_NTZ"),
    (pa.timestamp("ns"), "TIMESTAMP_NS", "TIMESTAMP_NTZ"), (pa.timestamp("us", "UTC"), "TIMESTAMPTZ", "TIMESTAMP"),
    (pa.list_(pa.int8()), "TINYINT[]", "ARRAY<TINYINT>"),
    (pa.map_(pa.string(), pa.int8()), 'STRUCT("key" VARCHAR, "value" TINYINT)[]',
     "ARRAY<STRUCT<`key`: STRING, `value`: TINYINT>>"),
    (pa.struct([('a"`', pa.int8()), ("b", pa.bool_())]), 'STRUCT("a""`" TINYINT, "b" BOOLEAN)',
     'STRUCT<`a"```: TINYINT, `b`: BOOLEAN>'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "duckdb", "spark"), WORDS, ids=str)
def test_what_others_call_a_type(kind: pa.DataType, duckdb: str, spark: str) -> None:
    schema = pa.schema([("c`", kind), ("d", pa.int8())])
    assert plain_types.duckdb_columns(schema) == {"c`": duckdb, "d": "TINYINT"}
    assert plain_types.spark_columns(schema) == f"`c``` {spark}, `d` TINYINT"


@pytest.mark.parametrize(
    "kind",
    [pa.null(), pa.date64(), pa.duration("s"), pa.month_day_nano_interval(), pa.dictionary(pa.int8(), pa.string()),
     pa.run_end_encoded(pa.int32(), pa.int8()), pa.list_view(pa.int8()), pa.large_list_view(pa.int8()),
     pa.decimal256(39, 0), pa.decimal128(5, -1), pa.struct([]), pa.sparse_union([pa.field("a", pa.int8())]),
     pa.bool8()],
    ids=str,
)  # fmt: skip
def test_types_that_no_file_holds(kind: pa.DataType) -> None:
    for path, column in (("a", kind), ("a.element", pa.list_(kind)), ("a.s", pa.struct([("s", kind)]))):
        with pytest.raises(UnsupportedType, match=f"column '{path}' has type") as told:
            check_types(pa.schema([("x", pa.int8()), ("a", column)]))
        assert told.value.fix
    check_types(pa.schema([("a", pa.decimal256(38, 0)), ("s", pa.struct([("x", pa.int8())]))]))


def test_formats_by_the_names_of_files() -> None:
    ends = {"parquet": ["parquet"], "json": ["json", "jsonl.gz", "ndjson.zst"], "csv": ["csv", "csv.zst"],
            "arrow": ["arrow", "feather", "ipc"], "vortex": ["vortex"]}  # fmt: skip
    names = {f"a.{end}": name for name, some in ends.items() for end in some}
    assert {name: None if (each := of_name(name)) is None else each.name for name in names} == names
    assert of_name("a.txt") is None
    assert of_name("a.json.bz2") is None
    with pytest.raises(ConfigError, match="none of parquet, json, csv, arrow, vortex"):
        file_format("orc")


def test_formats_whose_files_can_not_stay_open() -> None:
    for name in ("parquet", "vortex"):
        with pytest.raises(ConfigError, match=f"files of {name} can't stay open"):
            KNOWN[name].check_appendable(LocalFileOptions())
    for name in ("json", "csv", "arrow"):
        KNOWN[name].check_appendable(LocalFileOptions())
        assert KNOWN[name].suffix_bytes == (None if name == "arrow" else b"")


@pytest.mark.parametrize(
    "plain",
    [{"stats": {}}, {"footer": 1, "stats": {}}, {"footer": "f", "stats": {"a": ["1", "2"]}},
     {"footer": "f", "stats": {"a": [1, "2", 0]}}, {"footer": "f", "stats": {"a": ["1", 2, 0]}},
     {"footer": "f", "stats": {"a": ["1", "2", -1]}}, {"footer": "f", "stats": {"a": ["1", "2", True]}},
     {"footer": "f"}, {"format": "csv", "stats": {}}, {"format": "csv", "digest": 1, "stats": {}}],
)  # fmt: skip
def test_details_of_another_program(plain: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        details(plain)


def test_details_of_ours() -> None:
    plain = {"footer": "f", "stats": {"a": ["1", None, 2]}, "other": 1}
    assert details(plain) == {"footer": "f", "stats": {"a": ("1", None, 2)}}
    assert details({**plain, "fitted": True})["fitted"] is True
    assert "fitted" not in details({**plain, "fitted": 1})
    assert details({"format": "csv", "digest": "d", "stats": {}, "fitted": True}) == {
        "format": "csv", "digest": "d", "stats": {}, "fitted": True
    }  # fmt: skip
    assert has_bounds(pa.int8())


def test_rows_without_columns() -> None:
    schema = pa.schema([("a", pa.int64())])
    assert source._without_columns(3, schema).to_pylist() == [{"a": None}] * 3
    assert source._without_columns(0, schema).schema == schema
    assert source._without_columns(0, schema).num_rows == 0
    assert source._without_columns(3, pa.schema([])).num_rows == 3
    assert source._without_columns(0, pa.schema([])).num_rows == 0
    wide = pa.schema([("a", pa.int64()), ("b", pa.int8())])
    assert source._has(wide, schema)
    assert not source._has(schema, wide)
    assert not source._has(pa.schema([("a", pa.int32())]), schema)


# -- a library that is not there ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ImportError("none"), RuntimeError("its own")])
def test_vortex_that_does_not_start(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def imported(name: str, *more: Any) -> Any:
        if name == "vortex":
            raise error
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", imported)
    expected = ConfigError if isinstance(error, ImportError) else RuntimeError
    with pytest.raises(expected, match=r"vortex-data, and it is not installed|its own"):
        vortex._library()


def test_what_vortex_can_not_read() -> None:
    class PanicException(BaseException):
        """As a library in Rust has it."""

    def read(error: BaseException) -> Iterator[None]:
        with vortex._readable("x.vortex"):
            raise error
        yield

    for error in (RuntimeError("first\nsecond"), ValueError("first"), PanicException("first\nat x.rs")):
        with pytest.raises(CorruptTable, match="Vortex can't read the file") as told:
            list(read(error))
        assert told.value.why == "first"
    for passing in (IncompatibleData("ours"), KeyError("x"), OSError("disk"), KeyboardInterrupt()):
        with pytest.raises(type(passing)):
            list(read(passing))
