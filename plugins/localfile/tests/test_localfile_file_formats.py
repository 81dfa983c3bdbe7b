"""Data files that are not Parquet: every value comes back, damage is told, and readers that are not ours read them."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.cli.demo.verify import evaluate
from laketier.kit.data_file import ClosedFile
from laketier.kit.manifests import files_at
from laketier.spi import (
    AddColumn,
    ConfigError,
    CorruptTable,
    IncompatibleData,
    LakeStorageConfig,
    Leaf,
    Op,
    PartitionField,
    StagedFileLost,
    StorageError,
    TableDescriptor,
    TablePath,
    UnsupportedType,
    WidenColumn,
    WriteMode,
)
from laketier_localfile.file_formats.interface import Wanted
from laketier_localfile.file_formats.known import KNOWN, file_format
from laketier_localfile.options import FileFormatName, LocalFileOptions, TextCompression
from laketier_localfile.parquet import column_stats
from laketier_localfile.plugin import LocalFilePlugin

WAYS: dict[str, LocalFileOptions] = {
    "json": LocalFileOptions(file_format=FileFormatName.JSON),
    "json.gz": LocalFileOptions(file_format=FileFormatName.JSON, text_compression=TextCompression.GZIP),
    "json.zst": LocalFileOptions(
        file_format=FileFormatName.JSON, text_compression=TextCompression.ZSTD, compression_level=5
    ),
    "csv": LocalFileOptions(file_format=FileFormatName.CSV),
    "csv.gz": LocalFileOptions(file_format=FileFormatName.CSV, text_compression=TextCompression.GZIP),
    "csv.zst": LocalFileOptions(file_format=FileFormatName.CSV, text_compression=TextCompression.ZSTD),
    "arrow": LocalFileOptions(file_format=FileFormatName.ARROW),
    "vortex": LocalFileOptions(file_format=FileFormatName.VORTEX),
}
"""Each end of a data file's name, and what makes such files."""
WAY = pytest.mark.parametrize("way", list(WAYS))

TEXTS = [
    "",
    "NaN",
    "null",
    '"',
    "\\",
    "\n",
    "\r\n",
    ",",
    "a,b",
    "\0",
    "\x1f",
    "\x7f",
    "\u2028",
    "é\U0001f600",
    " x ",
    "'",
]
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.floats(width=16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(38, 10): st.decimals(-(10**27), 10**27, places=10),
    pa.decimal32(5, 2): st.decimals(-999, 999, places=2),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(TEXTS),
    pa.large_string(): st.sampled_from(TEXTS),
    pa.string_view(): st.sampled_from(TEXTS),
    pa.binary(): st.binary(max_size=5),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.date32(): st.dates(),
    pa.time32("s"): st.times().map(lambda value: value.replace(microsecond=0)),
    pa.time64("ns"): st.times(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("s", "Europe/Berlin"): st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
        lambda value: value.replace(microsecond=0, tzinfo=UTC)
    ),
    pa.timestamp("ns", "UTC"): st.integers(-9223372036 * 10**9, 2**63 - 1),
}
kinds: st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]] = st.recursive(
    st.sampled_from(list(KINDS.items())),
    lambda inner: st.one_of(
        inner.map(lambda kv: (pa.list_(kv[0]), st.lists(st.none() | kv[1], max_size=3))),
        inner.map(lambda kv: (pa.large_list(pa.field("x", kv[0], False)), st.lists(kv[1], max_size=3))),
        inner.map(lambda kv: (pa.list_(kv[0], 2), st.lists(st.none() | kv[1], min_size=2, max_size=2))),
        inner.map(
            lambda kv: (pa.map_(pa.string(), kv[0]), st.lists(st.tuples(st.sampled_from(TEXTS), kv[1]), max_size=3))
        ),
        st.tuples(inner, inner).map(
            lambda pair: (
                pa.struct([pa.field('a "b"', pair[0][0]), pa.field("ü\n", pair[1][0])]),
                st.fixed_dictionaries({'a "b"': st.none() | pair[0][1], "ü\n": st.none() | pair[1][1]}),
            )
        ),
    ),
    max_leaves=3,
)
columns = kinds.flatmap(
    lambda kv: st.lists(st.none() | kv[1], max_size=6).map(lambda values: pa.array(values, kv[0]))
)  # fmt: skip


def write(way: str, table: pa.Table, path: Path) -> ClosedFile:
    """As the writer does, in two blocks."""
    options = WAYS[way]
    assert options.file_format is not None
    chosen = file_format(options.file_format.value)
    with pa.OSFile(str(path), "wb") as stream:
        file = chosen.opener(options)(stream, table.schema)
        half = table.num_rows // 2
        file.write(table.slice(0, half))
        file.write(table.slice(half))
        footer = file.close()
        size = stream.tell()
    return ClosedFile(str(path), table.num_rows, size, (), footer)


def read(way: str, closed: ClosedFile, wanted: Wanted) -> pa.Table:
    chosen = file_format(way.partition(".")[0])
    with pa.OSFile(closed.path) as file:
        described = chosen.describe(closed, wanted.schema, file)
        assert chosen.check(file, closed.bytes, described.digest)
        return pa.Table.from_batches(chosen.read(file, closed.path, wanted), schema=wanted.schema)


def is_held(way: str, schema: pa.Schema) -> bool:
    try:
        file_format(way.partition(".")[0]).check_types(schema)
    except UnsupportedType:
        return False
    return True


def same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """NaN is NaN, and -0.0 is not 0.0."""
    return one.type == other.type and repr(one.to_pylist()) == repr(other.to_pylist())


@pytest.mark.every(2)
@WAY
@settings(deadline=None)
@given(values=columns)
def test_each_value_of_each_type_comes_back(way: str, values: pa.Array, tmp_path_factory: Any) -> None:
    table = pa.table({"v": values, "n": pa.array(range(len(values)))})
    if not is_held(way, table.schema):
        return  # refused when a table is created
    path = tmp_path_factory.mktemp("file") / f"part.{way}"
    closed = write(way, table, path)
    back = read(way, closed, Wanted(table.schema, table.schema, table.num_rows))
    assert same(back["v"], table["v"])
    assert back["n"].equals(table["n"])


@WAY
def test_a_line_longer_than_a_block_is_read(way: str, tmp_path: Path) -> None:
    table = pa.table({"v": ["x" * (9 << 20), "y", "z" * (20 << 20), ""]})
    closed = write(way, table, tmp_path / f"part.{way}")
    assert read(way, closed, Wanted(table.schema, table.schema, 4)).equals(table)
    assert read(way, closed, Wanted(table.schema, table.schema, 2)).equals(table.slice(0, 2))


@pytest.mark.parametrize("way", ["json", "csv"])
def test_ends_of_lines_and_quotes_within_values_end_no_block(way: str, tmp_path: Path) -> None:
    table = pa.table(
        {"v": ['x\n"y\n' * 1_500_000, "\n", '"', None, '\n"\n' * 2_500_000, *['a\n"'] * 1000], "n": range(1005)}
    )
    closed = write(way, table, tmp_path / f"part.{way}")
    assert read(way, closed, Wanted(table.schema, table.schema, 1005)).equals(table)


@WAY
def test_columns_are_read_as_they_were_written_and_widened_after(way: str, tmp_path: Path) -> None:
    """The text of a float of 32 bits means another float of 64."""
    table = pa.table({"f": pa.array([0.1], pa.float32()), "n": pa.array([7], pa.int32()), "left out": ["x"]})
    wide = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("added", pa.string())])
    closed = write(way, table, tmp_path / f"part.{way}")
    back = read(way, closed, Wanted(wide, table.schema.remove(2), 1))
    assert back.to_pylist() == [{"n": 7, "f": table["f"].cast(pa.float64())[0].as_py(), "added": None}]


flat = st.sampled_from(list(KINDS.items())).flatmap(
    lambda kv: st.lists(st.none() | kv[1], min_size=1, max_size=6).map(lambda values: pa.array(values, kv[0]))
)


@pytest.mark.every(2)
@WAY
@settings(deadline=None)
@given(values=flat)
def test_statistics_are_those_of_parquet(way: str, values: pa.Array, tmp_path_factory: Any) -> None:
    table = pa.table({"v": values, "n": pa.array(range(len(values)))})
    if not is_held(way, table.schema):
        return
    folder = tmp_path_factory.mktemp("file")
    closed = write(way, table, folder / f"part.{way}")
    pq.write_table(table, folder / "p")
    with pa.OSFile(closed.path) as file:
        stats = file_format(way.partition(".")[0]).describe(closed, table.schema, file).stats
    assert stats == column_stats(pq.read_metadata(folder / "p"), table.schema)


def filled(make_table: Any, way: str, **arguments: Any) -> Table:
    table: Table = make_table(options=WAYS[way], **arguments)
    table.round(0)
    return table


@WAY
def test_a_table_keeps_its_format_and_says_so_when_another_one_is_asked_for(make_table: Any, way: str) -> None:
    table = filled(make_table, way, partition_by=("region",))
    assert table.info.descriptor.properties["file.format"] == way.partition(".")[0]
    assert all(path.name.endswith(f".{way}") for path in table.plain_files())
    table.options = LocalFileOptions()
    table.round(1)
    assert len(table.read_ids()) == 8
    table.options = LocalFileOptions(file_format=FileFormatName.PARQUET)
    for refused in (table.create, lambda: table.factory):
        with pytest.raises(
            ConfigError, match=f"is parquet, and the table's files are {way.partition('.')[0]}"
        ) as error:
            refused()
        assert "new table" in str(error.value.fix)
    assert len(table.read_ids()) == 8, "reading does not ask"


def test_a_parquet_table_refuses_another_format(table: Table) -> None:
    assert "file.format" not in table.info.descriptor.properties
    table.options = WAYS["json"]
    with pytest.raises(ConfigError, match="is json, and the table's files are parquet"):
        table.create()


@WAY
def test_overwrites_filters_limits_and_time_travel(make_table: Any, way: str) -> None:
    table = filled(make_table, way, partition_by=("region",))
    table.round(1)
    assert table.read_ids(filters=(Leaf("id", Op.GE, 1000),)) == [1000, 1001, 1002, 1003]
    plan = table.storage.source(table.info).plan(scan_of(filters=(Leaf("id", Op.EQ, 1002),)))
    assert len(plan.splits) == 1, "other files are skipped by what the manifest knows of them"
    assert table.scan(limit=3).num_rows == 3
    assert table.scan(columns=()).num_rows == 8
    table.round(2, mode=WriteMode.OVERWRITE)
    assert table.read_ids() == [2000, 2001, 2002, 2003]
    assert table.read_ids(snapshot_id=1) == [0, 1, 2, 3]


def scan_of(**request: Any) -> Any:
    from laketier.spi import ScanRequest

    return ScanRequest(**request)


@WAY
def test_an_added_column_and_a_widened_one(make_table: Any, way: str) -> None:
    table = filled(make_table, way, schema=pa.schema([("id", pa.int32()), ("region", pa.string())]))
    change = [AddColumn(pa.field("x", pa.float64())), WidenColumn("id", pa.int64())]
    table.schema = table.storage.catalog().alter_table(table.path, change).schema
    table.round(1, [{"id": 2**40, "region": None, "x": math.inf}])
    assert table.scan().num_rows == 5
    assert table.read_ids() == [0, 1, 2, 3, 2**40]
    assert table.scan(columns=("x",))["x"].to_pylist().count(None) == 4
    for name, line in LocalFilePlugin().open_with(table.info).items():
        if name == "DuckDB":
            assert evaluate(line).num_rows == 5


@WAY
@pytest.mark.parametrize("damage", ["cut", "longer", "changed", "empty", "first byte"])
def test_damage_is_told_before_a_row_is_read(make_table: Any, way: str, damage: str) -> None:
    table = filled(make_table, way)
    (path,) = table.plain_files()
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(
        {
            "cut": data[:-1],
            "longer": data + b"\n",
            "changed": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "empty": b"",
            "first byte": b"\0" + data[1:],
        }[damage]
    )
    with pytest.raises(CorruptTable) as error:
        table.scan()
    assert path.name in str(error.value.where)
    with pytest.raises(CorruptTable):
        table.scan(limit=1)


@WAY
@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b" ", lambda data: b""])
def test_a_staged_file_that_was_changed_is_not_published(make_table: Any, way: str, damage: Any) -> None:
    table = filled(make_table, way)
    staged = table.stage(table.ids(5))
    (path,) = table.staged_files()
    path.write_bytes(damage(path.read_bytes()))
    committer = table.committer()
    with pytest.raises(StagedFileLost):
        committer.publish(committer.open(), [staged], None)
    assert table.read_ids() == [0, 1, 2, 3]


@WAY
def test_older_versions_refuse_what_they_do_not_know(make_table: Any, way: str) -> None:
    """They read versions 1 to 3, and take every file for Parquet. A manifest that names a file says its format, and
    so does a rollup, and the description of the table."""
    table = make_table(options=WAYS[way])
    table.round(0)
    table.round(1, [])
    versions = [json.loads(path.read_text())["body"]["version"] for path in sorted(table.log.folder.glob("0*.json"))]
    assert versions == [4, 4, 1], "the last one names no file"
    for epoch in range(2, 33):
        table.round(epoch, table.ids(epoch, 1))
    (rollup,) = table.log.folder.glob("rollups/*.json")
    assert json.loads(rollup.read_text())["body"]["version"] == 4
    entries = files_at(table.log, 33)
    assert {entry.details["format"] for entry in entries} == {way.partition(".")[0]}


def test_parquet_tables_are_written_as_before(table: Table) -> None:
    table.round(0)
    documents = [json.loads(path.read_text())["body"] for path in sorted(table.log.folder.glob("0*.json"))]
    assert [document["version"] for document in documents] == [1, 1]
    assert set(documents[1]["added"][0]) == {
        "path", "rows", "bytes", "schema", "partition", "bucket", "footer", "stats"
    }  # fmt: skip


def test_a_file_of_another_format_is_not_published(make_table: Any) -> None:
    """A writer that took the table for another one, or a forged result."""
    table = make_table(options=WAYS["json"])
    other = Table(table.warehouse.parent / "other")
    other.create()
    staged = other.stage(other.ids(1))
    (path,) = other.staged_files()
    path.rename(table.location / "__in_progress" / path.name)
    committer = table.committer()
    with pytest.raises(StagedFileLost, match="not the one"):
        committer.publish(committer.open(), [staged], None)
    assert table.read_ids() == []


def test_a_tuning_reaches_the_table_and_one_that_does_not_fit_is_refused_at_once(table: Table) -> None:
    table.options = LocalFileOptions(parquet_sort_by="id desc", parquet_page_checksums=True)
    table.round(0)
    assert table.scan()["id"].to_pylist() == [3, 2, 1, 0]
    (path,) = table.plain_files()
    group = pq.read_metadata(path).row_group(0)
    assert group.sorting_columns[0].descending
    data = bytearray(path.read_bytes())
    # The last byte of a page, which the footer's digest does not tell of.
    data[group.column(0).data_page_offset + group.column(0).total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptTable, match="damaged"):
        table.scan()
    table.options = LocalFileOptions(parquet_sort_by="idd")
    with pytest.raises(ConfigError, match="parquet-sort-by names 'idd'"):
        _ = table.factory


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith(("json", "csv"))])
@pytest.mark.parametrize("nested", [False, True])
def test_a_day_that_text_can_not_say_is_refused_before_it_lands(make_table: Any, way: str, nested: bool) -> None:
    for kind, value in (
        (pa.date32(), 3_000_000),
        (pa.timestamp("s"), 2**40),
        (pa.timestamp("us", "UTC"), -(2**62)),
        (pa.timestamp("ns", "UTC"), -9223372036 * 10**9 - 1),
        (pa.timestamp("ns"), -(2**63) + 1),
    ):
        if nested and way.startswith("csv"):
            continue
        values = pa.array([None, value], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
        if nested:
            values = pa.ListArray.from_arrays([0, 1, 2], values)
        table = make_table(
            path=path_of(f"t{value}{kind}".translate(str.maketrans("-[], =", "______"))),
            options=WAYS[way],
            schema=pa.schema([("v", values.type)]),
        )
        writer = table.factory.create_writer(context())
        writer.write(pa.record_batch([values], names=["v"]))
        with pytest.raises(IncompatibleData, match=r"outside the years 1 to 9999|before 1677-09-21"):
            writer.complete()
        writer.abort()
        assert table.staged_files() == []


def path_of(name: str) -> Any:
    from laketier.spi import TablePath

    return TablePath("db", name)


def context() -> Any:
    from laketier.spi import WriterInitContext, new_attempt_id

    return WriterInitContext(new_attempt_id())


def test_json_refuses_two_fields_of_one_name_also_when_they_come_later(make_table: Any) -> None:
    twice = pa.struct([("a", pa.int64()), ("a", pa.string())])
    with pytest.raises(UnsupportedType, match="two fields named"):
        make_table(options=WAYS["json"], schema=pa.schema([("s", pa.list_(twice))]))
    table = make_table(options=WAYS["json"])
    with pytest.raises(UnsupportedType, match="two fields named"):
        table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("s", twice))])


def test_a_format_that_is_not_known_names_those_that_are(make_table: Any) -> None:
    table = make_table()
    descriptor = TableDescriptor(table.schema, (PartitionField("region"),), properties={"file.format": "orc"})
    with pytest.raises(ConfigError, match="none of parquet, json"):
        table.storage.catalog().create_table(path_of("orc"), descriptor)


def test_each_name_of_the_option_is_a_format() -> None:
    assert {name.value for name in FileFormatName} == set(KNOWN)
    assert {way for chosen in KNOWN.values() for suffix in chosen.suffixes for way in [suffix[1:]]} == {
        "parquet", *WAYS
    }  # fmt: skip


PLAIN = pa.schema(
    [
        ("id", pa.int64()), ("b", pa.bool_()), ("i", pa.int8()), ("u", pa.uint32()), ("f", pa.float32()),
        ("x", pa.float64()), ("m", pa.decimal128(18, 6)), ("t", pa.string()), ("d", pa.date32()),
        ("w", pa.timestamp("us")), ("z", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
ROWS = [
    dict(zip(PLAIN.names, row, strict=True))
    for row in (
        (1, True, -128, 2**32 - 1, 0.1, 0.1, Decimal("123456789012.345678"), 'a "quote", \\ and\nline', date(1, 1, 1),
         datetime(2026, 11, 21, 8, 30, 15, 123456), datetime(2026, 11, 21, 8, 30, 15, 1, tzinfo=UTC)),
        (2, False, 127, 0, -1.5, -0.0, Decimal("-0.000001"), "", date(9999, 12, 31),
         datetime(1969, 12, 31), datetime(1969, 12, 31, tzinfo=UTC)),
        (3, *[None] * 10),
    )
]  # fmt: skip


@WAY
def test_duckdb_and_polars_read_the_files_with_the_lines_that_we_print(make_table: Any, way: str) -> None:
    """Beside staged and superseded files, and manifests."""
    import duckdb

    table = make_table(options=WAYS[way], schema=PLAIN)
    table.round(0, ROWS[:2])
    table.round(1, [{**ROWS[0], "f": None}], mode=WriteMode.OVERWRITE)
    table.round(2, ROWS, mode=WriteMode.OVERWRITE)
    table.stage(ROWS)
    duckdb.sql("SET TimeZone = 'UTC'")
    expected = pa.Table.from_pylist(ROWS, schema=PLAIN)
    lines = LocalFilePlugin().open_with(table.info)
    assert {"DuckDB", "Polars"} <= set(lines)
    for tool in ("DuckDB", "Polars"):
        found = evaluate(lines[tool])
        if tool == "Polars" and way.startswith(("json", "csv")):  # which infers types of text
            found = as_text_says(found)
        found = found.select(PLAIN.names).cast(PLAIN).sort_by("id")
        assert found.to_pylist() == expected.to_pylist(), tool


@WAY
def test_numbers_that_are_none_and_a_zero_with_a_sign(make_table: Any, way: str) -> None:
    table = make_table(options=WAYS[way], schema=pa.schema([("id", pa.int64()), ("f", pa.float64())]))
    numbers = [math.nan, math.inf, -math.inf, -0.0, 0.0, None]
    table.round(0, [{"id": i, "f": number} for i, number in enumerate(numbers)])
    lines = LocalFilePlugin().open_with(table.info)
    for tool in ("DuckDB", "Polars"):
        if tool == "Polars" and way.startswith("json"):
            continue  # it refuses NaN, as JSON has none
        assert repr(evaluate(lines[tool]).sort_by("id")["f"].to_pylist()) == repr(numbers), tool


@WAY
def test_a_table_of_one_column_whose_values_are_null_or_empty(make_table: Any, way: str) -> None:
    table = make_table(options=WAYS[way], schema=pa.schema([("one", pa.string())]))
    texts = ["x", None, "", "y", None]
    table.round(0, [{"one": text} for text in texts])
    assert table.scan()["one"].to_pylist() == texts
    for tool in ("DuckDB", "Polars"):
        assert evaluate(LocalFilePlugin().open_with(table.info)[tool])["one"].to_pylist() == texts, tool


def as_text_says(found: pa.Table) -> pa.Table:
    """Dates, moments and decimals that a reader left as text; Polars' floats are of 64 bits."""
    columns_ = []
    for field in PLAIN:
        column = found[field.name]
        column = column.cast(pa.string()) if column.type == pa.string_view() else column
        columns_.append(column.cast(field.type, safe=field.name != "f"))
    return pa.table(columns_, schema=PLAIN)


@WAY
def test_time_of_day_and_bytes(make_table: Any, way: str) -> None:
    schema = pa.schema([("t", pa.time64("us")), ("b", pa.binary())])
    table = make_table(options=WAYS[way], schema=schema)
    rows = [{"t": time(23, 59, 59, 999999), "b": b"\0\xff"}, {"t": None, "b": b""}, {"t": time(0), "b": None}]
    table.round(0, rows)
    assert table.scan().to_pylist() == rows


def test_vortex_says_how_it_is_installed(make_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(make_table, "vortex")
    monkeypatch.setitem(sys.modules, "vortex", None)
    for needs_it in (table.scan, lambda: table.round(1), lambda: make_table(path=path_of("t"), options=table.options)):
        with pytest.raises(ConfigError, match="vortex-data, and it is not installed") as error:
            needs_it()
        assert "vortex-data>=0.93,<0.94" in str(error.value.fix)
        # The suite asks each refusal of an option for its key and value.
        assert "lake.localfile.file-format than vortex" in str(error.value.fix)


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), pa.int64()), pa.binary(4)])
def test_vortex_refuses_what_its_edition_does_not_hold(make_table: Any, kind: pa.DataType) -> None:
    schema = pa.schema([("v", pa.list_(pa.struct([("x", kind)])))])
    with pytest.raises(UnsupportedType, match=r"'v\.element\.x' of type"):
        make_table(options=WAYS["vortex"], schema=schema)


def test_vortex_leaves_no_file_when_it_is_given_up(make_table: Any, tmp_path: Path) -> None:
    table = make_table(options=replace(WAYS["vortex"], buffer_bytes=1))
    (temporary := tmp_path / "temporary").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        writer = table.factory.create_writer(context())
        for epoch in range(20):
            writer.write(pa.RecordBatch.from_pylist(table.ids(epoch), table.schema))
        assert list(temporary.iterdir()), "the rows are in a temporary file"
        writer.abort()
        assert (table.staged_files(), list(temporary.iterdir())) == ([], [])


class _Failing(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_of_vortex_that_can_not_be_read_now_is_not_damaged(tmp_path: Path) -> None:
    rows = pa.table({"v": [1, 2, 3]})
    write("vortex", rows, tmp_path / "part.vortex")
    content = (tmp_path / "part.vortex").read_bytes()
    wanted = Wanted(rows.schema, rows.schema, rows.num_rows)
    for file, error in ((_Failing(content), StorageError), (io.BytesIO(content[:-9]), CorruptTable)):
        with pytest.raises(error) as raised:
            list(KNOWN["vortex"].read(pa.PythonFile(file, mode="r"), "part.vortex", wanted))
        assert raised.type is error


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (replace(WAYS["json.gz"], compression_level=10), "compression-level is 10, and the codec is gzip"),
        (replace(WAYS["csv.zst"], compression_level=2**40), "and the codec is zstd"),
        (LocalFileOptions(compression_level=2**40), "and the codec is zstd"),
    ],
)
def test_the_driver_refuses_a_level_that_the_codec_does_not_have(
    options: LocalFileOptions, told: str, tmp_path: Path
) -> None:
    storage = LocalFilePlugin().create_storage(LakeStorageConfig(str(tmp_path), options))
    made = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("a", pa.int64())])))
    with pytest.raises(ConfigError, match=told):
        storage.tiering_factory(made)
