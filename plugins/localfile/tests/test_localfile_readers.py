"""What readers that are not ours see: finished files only, with every value as it was written."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from laketier.cli.demo.verify import evaluate
from laketier.spi import AddColumn, UnsupportedType, WidenColumn, WriteMode
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.types import TYPE_TABLE, check_types

ODD = [
    "eu", "a/b", "a=b", "100%", "%2F", "sp ace", " lead", "é ü 中", "..", ".", "01", "1e5", "true", "2026-01-01", "a+b",
    "[x]{y}", "q?*", "new\nline", "tab\t", "nul\0l", "c:d", "~t", "#h", "a&b;c", "$x", "back\\s", "'quo\"te", "^", None,
    "__HIVE_DEFAULT_PARTITION__x", "_under", ".dot", "null", "NULL", "NaN", "\x7f", "A", "a", "x" * 240,
]  # fmt: skip


@pytest.fixture
def odd(make_table: Any) -> Any:
    table = make_table(partition_by=("region",))
    table.round(0, [{"id": i, "region": value} for i, value in enumerate(ODD)])
    return table


def as_dict(rows: Any) -> dict[int, Any]:
    return {row["id"]: row["region"] for row in rows}


def test_every_value_has_a_folder_that_each_reader_reads_back(odd: Any) -> None:
    expected = dict(enumerate(ODD))
    files = f"{odd.location}/**/*.parquet"
    assert as_dict(odd.scan().to_pylist()) == expected
    for hive in ("true", "false"):
        rows = duckdb.sql(f"SELECT id, region FROM read_parquet('{files}', hive_partitioning = {hive})").fetchall()
        assert dict(rows) == expected, f"DuckDB, hive_partitioning = {hive}"
        frame = pl.scan_parquet(files, hive_partitioning=hive == "true").collect()
        assert as_dict(frame.to_dicts()) == expected, f"Polars, hive_partitioning = {hive}"
    for partitioning in (None, "hive", ds.partitioning(pa.schema([("region", pa.string())]), flavor="hive")):
        table = ds.dataset(odd.location, format="parquet", partitioning=partitioning).to_table()
        assert as_dict(table.to_pylist()) == expected, f"pyarrow, partitioning = {partitioning}"


def test_folders_are_named_as_hive_and_spark_name_them(odd: Any) -> None:
    folders = {path.parent.name for path in odd.plain_files()}
    assert {"region=a%2Fb", "region=__HIVE_DEFAULT_PARTITION__", "region=sp ace", "region=%2F"[:7] + "%252F"} <= folders
    assert all(path.parent.parent == odd.location for path in odd.plain_files())


def test_typed_partitions_read_back_typed(make_table: Any) -> None:
    schema = pa.schema(
        [("n", pa.int32()), ("d", pa.date32()), ("b", pa.bool_()), ("t", pa.timestamp("us")),
         ("z", pa.timestamp("ms", "UTC")), ("m", pa.decimal128(9, 2)), ("id", pa.int64())]
    )  # fmt: skip
    table = make_table(schema=schema, partition_by=("n", "d", "b", "t", "z", "m"))
    at, zoned = datetime(2026, 1, 1, 2, 3, 4, 5), datetime(2026, 1, 1, 2, 3, 4, tzinfo=UTC)
    rows = [
        dict(zip(schema.names, (-1, date(1, 1, 1), True, at, zoned, Decimal("1.20"), 0), strict=True)),
        dict(zip(schema.names, (None, None, None, None, None, None, 1), strict=True)),
    ]
    table.round(0, rows)

    def by_id(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(found, key=lambda row: row["id"])

    assert by_id(table.scan().to_pylist()) == rows
    lines = LocalFilePlugin().open_with(table.info)
    duckdb.sql("SET TimeZone = 'UTC'")
    for tool in ("DuckDB", "Polars"):
        found = evaluate(lines[tool])
        assert by_id(found.select(schema.names).cast(schema).to_pylist()) == rows, tool
    # pyarrow parses no decimals from folder names; the files have them anyway.
    folders = ds.partitioning(pa.schema([field for field in schema if field.name not in ("m", "id")]), flavor="hive")
    typed = ds.dataset(table.location, format="parquet", partitioning=folders, schema=schema)
    assert by_id(typed.to_table().to_pylist()) == rows


def test_the_lines_we_print_read_a_table_that_grew_a_column(table: Any) -> None:
    table.round(0)
    table.schema = table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("x", pa.int32()))]).schema
    table.round(1, [{"id": 9, "region": "r", "x": 1}])
    lines = LocalFilePlugin().open_with(table.info)
    for tool in ("DuckDB", "Polars"):
        found = evaluate(lines[tool])
        assert (found.num_rows, pc.sum(found["x"]).as_py()) == (5, 1), tool


def test_the_lines_we_print_read_a_table_with_a_widened_column(make_table: Any) -> None:
    schema = pa.schema([("id", pa.int32()), ("f", pa.float32()), ("m", pa.decimal128(9, 2))])
    table = make_table(schema=schema)
    table.round(0, [{"id": 1, "f": 0.5, "m": Decimal("1.20")}])
    wide = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("m", pa.decimal128(18, 2))])
    table.schema = table.storage.catalog().alter_table(table.path, [WidenColumn(f.name, f.type) for f in wide]).schema
    rows = [{"id": 2**40, "f": 0.1, "m": Decimal("9999999999.99")}]
    table.round(1, rows)
    everything = [{"id": 1, "f": 0.5, "m": Decimal("1.20")}, *rows]
    lines = LocalFilePlugin().open_with(table.info)
    for tool in ("DuckDB", "Polars"):
        found = evaluate(lines[tool])
        assert sorted(found.cast(wide).to_pylist(), key=lambda row: row["id"]) == everything, tool
    declared = ds.dataset(table.location, format="parquet", schema=wide)
    assert sorted(declared.to_table().to_pylist(), key=lambda row: row["id"]) == everything


def test_staged_and_superseded_files_are_hidden_from_every_reader(table: Any) -> None:
    """Arroyo: recursive globs see staging."""
    table.round(0)
    table.round(1, mode=WriteMode.OVERWRITE)
    table.stage(table.ids(2))
    ids = [1000, 1001, 1002, 1003]
    files = f"{table.location}/**/*.parquet"
    assert sorted(duckdb.sql(f"SELECT id FROM '{files}'").fetchall()) == [(i,) for i in ids]
    assert sorted(pl.scan_parquet(files).collect()["id"]) == ids
    assert sorted(ds.dataset(table.location, format="parquet").to_table()["id"].to_pylist()) == ids
    assert sorted(duckdb.sql(f"SELECT id FROM '{table.warehouse}/**/*.parquet'").fetchall()) == [(i,) for i in ids]


def test_no_reader_ever_sees_a_staged_file_grow(table: Any) -> None:
    from laketier.spi import WriterInitContext, new_attempt_id

    writer = table.factory.create_writer(WriterInitContext(new_attempt_id()))
    writer.write(pa.RecordBatch.from_pylist(table.ids(0), schema=table.schema))
    result = writer.complete()
    assert table.plain_files() == []
    assert [path.name for path in table.staged_files()] == [os.path.basename(result.files[0].path)]
    assert table.staged_files()[0].name.endswith(".parquet.inprogress")
    writer.abort()
    writer.abort()
    assert table.staged_files() == []


def test_files_are_cut_by_rows_and_small_batches_are_collected(make_table: Any) -> None:
    from laketier_localfile.options import LocalFileOptions

    table = make_table(options=LocalFileOptions(target_file_rows=100, row_group_rows=50))
    writer = table.factory.create_writer(_context())
    for i in range(250):
        writer.write(pa.RecordBatch.from_pylist([{"id": i, "region": "r"}], schema=table.schema))
    files = [pq.read_metadata(table.location / file.path) for file in writer.complete().files]
    assert [(file.num_rows, file.num_row_groups) for file in files] == [(100, 2), (100, 2), (50, 1)]


DAY = date(2026, 1, 2)
AT = datetime(2026, 1, 2, 3, 4, 5)
HELD: dict[str, list[tuple[pa.DataType, Any]]] = {
    "bool": [(pa.bool_(), True)],
    "int8, int16, int32, int64": [(pa.int8(), -128), (pa.int16(), 1), (pa.int32(), 1), (pa.int64(), -(2**63))],
    "uint8, uint16, uint32, uint64": [
        (pa.uint8(), 255), (pa.uint16(), 1), (pa.uint32(), 2**32 - 1), (pa.uint64(), 2**64 - 1),
    ],
    "float16": [(pa.float16(), 1.5)],
    "float32, float64": [(pa.float32(), 1.5), (pa.float64(), float("-inf"))],
    "decimal32, decimal64, decimal128, decimal256": [
        (pa.decimal32(5, 2), Decimal("-1.23")), (pa.decimal64(15, 2), Decimal("1.23")),
        (pa.decimal128(38, 10), Decimal("1.23")), (pa.decimal256(38, 0), Decimal(10**37)),
    ],
    "string, large_string, string_view": [(kind, "ä\0") for kind in (pa.string(), pa.large_string(), pa.string_view())],
    "binary, large_binary, binary_view": [
        (pa.binary(), b"\0\xff"), (pa.large_binary(), b""), (pa.binary_view(), b"\0\xff"),
    ],
    "fixed_size_binary": [(pa.binary(4), b"abcd")],
    "date32": [(pa.date32(), date(1, 1, 1)), (pa.date32(), date(9999, 12, 31))],
    "time32, time64": [
        (pa.time32("s"), time(1, 2, 3)), (pa.time32("ms"), time(1, 2, 3)), (pa.time64("us"), time(1, 2, 3, 4)),
        (pa.time64("ns"), pa.scalar(1_234_567_891, pa.time64("ns"))),
    ],
    "timestamp": [
        *((pa.timestamp(unit), AT) for unit in ("s", "ms", "us", "ns")),
        *((pa.timestamp(unit, "Europe/Berlin"), AT.replace(tzinfo=UTC)) for unit in ("s", "ms", "us", "ns")),
        (pa.timestamp("s"), datetime(9999, 1, 1)), (pa.timestamp("ns"), pa.scalar(1, pa.timestamp("ns"))),
    ],
    "list, large_list": [
        (pa.list_(pa.int32()), [1, None]), (pa.large_list(pa.string()), ["x"]),
        (pa.list_(pa.list_(pa.time32("s"))), [[], None]),
        (pa.list_(pa.field("element", pa.int32(), nullable=False)), [1]),
    ],
    "fixed_size_list": [(pa.list_(pa.float32(), 3), [1.0, 2.0, 3.0])],
    "struct": [
        (pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.timestamp("s"))]))]), {"a": None, "b": {"c": AT}}),
    ],
    "map": [(pa.map_(pa.string(), pa.list_(pa.int32())), [("a", [1])])],
}  # fmt: skip
VECTOR = pa.field("v", pa.list_(pa.float32(), 2), nullable=False)
REFUSED: dict[str, list[pa.DataType]] = {
    "null": [pa.null()],
    "date64": [pa.date64()],
    "duration": [pa.duration("us")],
    "month_day_nano_interval": [pa.month_day_nano_interval()],
    "dictionary": [pa.dictionary(pa.int32(), pa.string())],
    "run_end_encoded": [pa.run_end_encoded(pa.int32(), pa.int64())],
    "list_view, large_list_view": [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())],
    "decimal of precision > 38": [pa.decimal256(39, 0)],
    "decimal of negative scale": [pa.decimal128(10, -2)],
    "fixed_size_list of size 0": [pa.list_(pa.float32(), 0), pa.list_(pa.list_(pa.float32(), 0), 2)],
    "fixed_size_list that is not null, in a struct that may be": [
        pa.struct([pa.field("v", pa.list_(pa.float32(), 2), nullable=False)]),
        pa.struct(
            [pa.field("s", pa.struct([pa.field("v", pa.list_(pa.float32(), 2), nullable=False)]), nullable=False)]
        ),
    ],
    "struct without fields": [pa.struct([])],
    "union": [pa.dense_union([pa.field("a", pa.int64())]), pa.sparse_union([pa.field("a", pa.int64())])],
    "extension types": [pa.uuid(), pa.json_()],
}


def test_the_type_table_is_complete() -> None:
    held = {arrow for arrow, becomes, _ in TYPE_TABLE if becomes != "refused"}
    assert held == HELD.keys()
    assert {arrow for arrow, _, _ in TYPE_TABLE} - held == REFUSED.keys()


@pytest.mark.parametrize("row", HELD)
def test_a_type_that_is_held_comes_back_as_it_was(make_table: Any, row: str) -> None:
    names = [f"c{i}" for i in range(len(HELD[row]))]
    arrays = [pa.array([value, None], kind) for kind, value in HELD[row]]
    table = make_table(schema=pa.schema([(n, a.type) for n, a in zip(names, arrays, strict=True)]))
    batch = pa.RecordBatch.from_arrays(arrays, names)
    writer, committer = table.factory.create_writer(_context()), table.committer()
    writer.write(batch)
    committer.publish(committer.open(), [writer.complete()], None)
    found = table.scan()
    assert found.schema == table.schema
    assert found.equals(pa.Table.from_batches([batch]))


@pytest.mark.parametrize("row", REFUSED)
def test_a_type_that_is_refused_is_refused_at_every_level_with_advice(row: str) -> None:
    for kind in REFUSED[row]:
        for wrapped in (kind, pa.list_(kind), pa.struct([("x", kind)]), pa.map_(pa.string(), kind)):
            with pytest.raises(UnsupportedType, match=r"column 'c.*does not store\. \w"):
                check_types(pa.schema([("c", wrapped)]))


def _context() -> Any:
    from laketier.spi import WriterInitContext, new_attempt_id

    return WriterInitContext(new_attempt_id())


@pytest.mark.parametrize("file_format", list(FileFormatName), ids=str)
@pytest.mark.parametrize("name", ["a[b]{c}", "st*r", "qu?"])
def test_the_lines_for_other_readers_read_the_one_folder_that_they_name(
    tmp_path: Path, make_table: Any, file_format: FileFormatName, name: str
) -> None:
    """Readers take some characters of a path for a pattern, which fits no folder, or those of other tables, too."""
    table = make_table(options=LocalFileOptions(file_format=file_format))
    for warehouse in ("star", "quo", name):
        table = replace(table, warehouse=tmp_path / warehouse)
        table.create()
        table.round(0)
    assert table.read_by_others() == {"DuckDB": [0, 1, 2, 3], "Polars": [0, 1, 2, 3]}


@pytest.mark.parametrize("name", ["a[b]{c}", "st*r"])
def test_so_do_those_for_columns_in_the_names_of_folders(tmp_path: Path, make_table: Any, name: str) -> None:
    options = LocalFileOptions(partition_columns_in_files=False)
    table = make_table(partition_by=("region",), options=options)
    for warehouse in ("star", name):
        table = replace(table, warehouse=tmp_path / warehouse)
        table.create()
        table.round(0)
    assert table.read_by_others() == {"DuckDB": [0, 1, 2, 3], "Polars": [0, 1, 2, 3]}
