"""Each format of files, whole and damaged."""

from __future__ import annotations

import datetime
import gzip
import io
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import BadRecord, ConfigError, IncompatibleData
from landing import all_of, land_bytes, log_of, opened, rows

TABLE = pa.table({"id": pa.array([1, 2, None], pa.int64()), "name": ["a", "ü", None]})
ROWS = TABLE.to_pylist()


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path


def parquet(table: pa.Table = TABLE, **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def arrow(table: pa.Table = TABLE, make: Any = pa.ipc.new_file) -> bytes:
    sink = io.BytesIO()
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def avro(records: list[dict[str, Any]] = ROWS, **types: Any) -> bytes:
    types = types or {"id": ["null", "long"], "name": ["null", "string"]}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, records)
    return sink.getvalue()


JSON = '{"id": 1, "name": "a"}\n{"name": "ü", "id": 2}\n\n{}\n'.encode()
CSV = 'id,name\n1,a\n2,"ü"\n,\n'.encode()
COLUMNS = {"columns.id": "int64", "columns.name": "string"}
WHOLE = {
    "parquet": ("parquet", parquet(), {}),
    "arrow": ("arrow", arrow(), {}),
    "arrow stream": ("arrow", arrow(make=pa.ipc.new_stream), {}),
    "avro": ("avro", avro(), {}),
    "json": ("json", JSON, COLUMNS),
    "json, inferred": ("json", JSON, {"infer": True}),
    "csv": ("csv", CSV, COLUMNS),
    "csv, inferred": ("csv", CSV, {"infer": True}),
    "csv, no header": ("csv", CSV[8:], {**COLUMNS, "header": False}),
    "csv, other delimiter, BOM": ("csv", b"\xef\xbb\xbf" + CSV.replace(b",", b";"), {**COLUMNS, "delimiter": ";"}),
}


def bad_of(log: Any) -> tuple[list[dict[str, Any]], list[BadRecord]]:
    bad: list[BadRecord] = []
    return rows(log, on_bad_record=bad.append), bad


@pytest.mark.parametrize("case", WHOLE)
def test_a_whole_file(zone: Path, case: str) -> None:
    kind, data, read = WHOLE[case]
    land_bytes(zone, "f", data)
    log = log_of(zone, {"format": kind, **read})
    assert log.table.schema == TABLE.schema
    assert rows(log) == ROWS
    assert rows(log, columns=["name"]) == [{"name": row["name"]} for row in ROWS]
    assert rows(log, columns=[]) == [{}] * 3, "their number is kept"
    with pytest.raises(ConfigError, match="has no columns"):
        rows(log, columns=["nam"])


@pytest.mark.parametrize("case", WHOLE)
@pytest.mark.parametrize("damage", ["empty", "cut", "trash"])
def test_a_damaged_file_is_a_bad_record_and_the_others_are_read(zone: Path, case: str, damage: str) -> None:
    kind, data, read = WHOLE[case]
    broken = {"empty": b"", "cut": data[: len(data) // 2], "trash": b"\x00\xff trash {\n" * 9}[damage]
    land_bytes(zone, "1", data, at=1)
    land_bytes(zone, "2", broken, at=2)
    land_bytes(zone, "3", data, at=3)
    log = log_of(zone, {"format": kind, **read})
    found, bad = bad_of(log)
    assert found[:3] == ROWS
    assert found[-3:] == ROWS
    if damage == "empty" and kind in ("json", "csv"):
        assert (found, bad) == (ROWS * 2, []), "no lines, no records"
        return
    if kind not in ("json", "csv"):
        assert [(record.offset, record.value) for record in bad] == [(1, None)]
    if damage != "cut" or kind not in ("json", "csv"):
        assert found == ROWS * 2
        assert bad
        assert all(record.offset == 1 and str(zone / "t" / "2") in record.error for record in bad)
        with pytest.raises(IncompatibleData, match="offset 1 of bucket 'files'"):
            rows(log)


def test_int96_is_microseconds_of_any_year(zone: Path) -> None:
    """As Spark and Hive write it. As nanoseconds, 9999-12-31 is another moment."""
    moments = [datetime.datetime(year, 12, 31, 23, 59) for year in (1, 1600, 1969, 2024, 9999)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    land_bytes(zone, "f", parquet(table, use_deprecated_int96_timestamps=True, store_schema=False))
    log = log_of(zone, {"format": "parquet"})
    assert log.table.schema == table.schema
    assert [row["at"] for row in rows(log)] == moments
    given = log_of(zone, {"format": "parquet", "columns.at": "timestamp[ns]"})
    _, bad = bad_of(given)
    assert bad, "what it can't hold is refused"


NO_ROWS = TABLE.schema.empty_table()


def groups_of(*tables: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, TABLE.schema) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


EMPTY = {
    "parquet": ("parquet", "f", parquet(NO_ROWS)),
    "parquet without dictionaries": ("parquet", "f", parquet(NO_ROWS, use_dictionary=False)),
    "parquet without row groups": ("parquet", "f", groups_of()),
    "parquet of two row groups": ("parquet", "f", groups_of(NO_ROWS, NO_ROWS)),
    "arrow": ("arrow", "f", arrow(NO_ROWS)),
    "arrow stream": ("arrow", "f", arrow(NO_ROWS, pa.ipc.new_stream)),
    "avro": ("avro", "f", avro([])),
    "json": ("json", "f", b""),
    "json.gz": ("json", "f.gz", gzip.compress(b"")),
    "csv": ("csv", "f", b""),
    "csv of a header": ("csv", "f", b"id,name\n"),
    "csv.gz": ("csv", "f.gz", gzip.compress(b"")),
    "csv.gz of a header": ("csv", "f.gz", gzip.compress(b"id,name")),
}


@pytest.mark.parametrize("case", EMPTY)
def test_a_file_without_rows_has_none(zone: Path, case: str) -> None:
    """Of writers that write what they have: nothing, too."""
    kind, name, data = EMPTY[case]
    land_bytes(zone, name, data)
    log = log_of(zone, {"format": kind} if kind in ("parquet", "arrow", "avro") else {"format": kind, **COLUMNS})
    assert log.table.schema == TABLE.schema
    assert rows(log) == []


def test_row_groups_without_rows_are_passed_over(zone: Path) -> None:
    land_bytes(zone, "f", groups_of(NO_ROWS, TABLE, NO_ROWS, NO_ROWS, TABLE, NO_ROWS))
    for split_bytes in (1, 2**30):
        assert rows(log_of(zone, {"split-bytes": split_bytes})) == ROWS * 2


def test_a_large_file_without_rows_has_a_split(zone: Path) -> None:
    """A plan that left its offset out would be refused, and stop the table."""
    land_bytes(zone, "1", parquet(), at=1)
    land_bytes(zone, "2", groups_of(NO_ROWS), at=2)
    log = log_of(zone, {"split-bytes": 1})
    assert [(split.start, split.end) for split in log.plan(all_of(log))] == [(0, 1), (1, 2)]
    assert rows(log) == ROWS


def test_a_table_has_the_columns_of_its_first_file_for_good(zone: Path) -> None:
    land_bytes(zone, "1", parquet(), at=1)
    log = log_of(zone, {})
    log.bounds()
    (zone / "t" / "1").unlink()
    land_bytes(zone, "2", parquet(pa.table({"name": ["x"]})), at=2)
    land_bytes(zone, "3", parquet(TABLE.append_column("more", pa.array([1, 2, 3]))), at=3)
    land_bytes(zone, "4", parquet(pa.table({"id": ["x"]})), at=4)
    log = log_of(zone, {})
    assert log.table.schema == TABLE.schema
    bad: list[BadRecord] = []
    assert rows(log, all_of(log, 1), on_bad_record=bad.append) == [{"id": None, "name": "x"}]
    assert [record.offset for record in bad] == [2, 3]
    assert "'more'" in bad[0].error
    assert "'id' is string, and the table's is int64" in bad[1].error
    assert rows(log_of(zone, {"extra-columns": "ignore"}), all_of(log, 2, 3)) == ROWS


def test_a_large_parquet_file_is_read_in_parts(zone: Path) -> None:
    many = pa.table({"id": range(1000)})
    land_bytes(zone, "f", parquet(many, row_group_size=100))
    log = log_of(zone, {"split-bytes": 2000})
    splits = log.plan(all_of(log))
    assert len(splits) > 3
    assert {(split.start, split.end) for split in splits} == {(0, 1)}
    assert [row["id"] for row in rows(log)] == list(range(1000))


BAD_LINES = {
    "json": {
        '{"id": "x"}': "changed from number to string",
        '{"id": 1.5}': "couldn't parse",
        "null": "not a JSON object",
        "[1]": "not a JSON object",
        "trash": "not a JSON object",
        '{"id": 1} null': "not a JSON object",
        '{"id": 1}{"id": 2}': "not JSON: Extra data",
        '{"id": 1, "x": 2}': "unexpected field",
        '{"id": 1, "id": 2}': "specified twice",
        '{"name": "\\ud800"}': "",
        '{"id": 1': "",
    },
    "csv": {
        "x,a": "conversion error to int64",
        "1": "Expected 2 columns, got 1",
        "1,a,b": "Expected 2 columns, got 3",
        '1,"a': "not closed",
        'b"': "not closed",
    },
}


@pytest.mark.parametrize(("format", "line"), [(f, line) for f, lines in BAD_LINES.items() for line in lines])
def test_a_bad_line_is_told_with_its_number_and_bytes(zone: Path, format: str, line: str) -> None:
    good = {"json": b'{"id": %d, "name": "} null"}\r\n', "csv": b"%d,} null\r\n"}[format]
    header = b"id,name\r\n" if format == "csv" else b"\n"
    lines = [good % number for number in range(100)]
    lines[41:41] = [line.encode() + b"\n"]
    lines[97:97] = [line.encode() + b"\n"]
    land_bytes(zone, "f", header + b"".join(lines))
    found, bad = bad_of(log_of(zone, {"format": format, **COLUMNS}))
    assert [row["id"] for row in found] == list(range(100))
    assert {row["name"] for row in found} == {"} null"}
    assert [record.value for record in bad] == [line.encode()] * 2
    assert f"line 43 of {zone}/t/f: " in bad[0].error
    assert f"line 99 of {zone}/t/f: " in bad[1].error
    assert BAD_LINES[format][line] in bad[0].error


def test_text_that_is_not_utf8_is_bad(zone: Path) -> None:
    land_bytes(zone, "f", b'{"name": "a"}\n{"name": "\xff"}\n')
    found, bad = bad_of(log_of(zone, {"format": "json", **COLUMNS}))
    assert [row["name"] for row in found] == ["a"]
    assert [record.value for record in bad] == [b'{"name": "\xff"}']


def test_compressed_text(zone: Path) -> None:
    land_bytes(zone, "f.json.gz", gzip.compress(JSON), at=1)
    land_bytes(zone, "g.json.gz", gzip.compress(JSON)[:-20], at=2)
    found, bad = bad_of(log_of(zone, {"format": "json", **COLUMNS}))
    assert found[:3] == ROWS
    assert [(record.offset, record.value) for record in bad] == [(1, None)]


@pytest.mark.parametrize(
    ("kind", "json", "csv", "value"),
    [
        ("date32", '"2024-02-29"', "2024-02-29", datetime.date(2024, 2, 29)),
        ("time64[us]", '"10:00:01"', "10:00:01", datetime.time(10, 0, 1)),
        ("timestamp[us]", '"2024-02-29T10:00:00"', "2024-02-29T10:00:00", datetime.datetime(2024, 2, 29, 10)),
        (
            "timestamp[us, UTC]",
            '"2024-02-29T10:00:00Z"',
            "2024-02-29T10:00:00Z",
            datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC),
        ),
        ("decimal128(10, 2)", "1.25", "1.25", Decimal("1.25")),
        ("bool", "true", "true", True),
        ("double", "1", "1", 1.0),
        ("string", '"NA"', "NA", "NA"),
    ],
)
def test_types_of_text(zone: Path, kind: str, json: str, csv: str, value: Any) -> None:
    land_bytes(zone, "f", f'{{"v": {json}}}\n'.encode())
    assert rows(log_of(zone, {"format": "json", "columns.v": kind})) == [{"v": value}]
    (zone / "u").mkdir()
    (zone / "u" / "f").write_text(f"v\n{csv}\n")
    assert rows(opened(zone).open("u", {"format": "csv", "columns.v": kind})) == [{"v": value}]


def test_nested_json(zone: Path) -> None:
    land_bytes(zone, "f", b'{"v": [{"a": 1}, {"a": null}]}\n')
    read = {"format": "json", "columns.v": "list<struct<a: int32>>"}
    assert rows(log_of(zone, read)) == [{"v": [{"a": 1}, {"a": None}]}]


def test_the_types_of_avro(zone: Path) -> None:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}
    types: Mapping[str, Any] = {
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "day": {"type": "int", "logicalType": "date"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        "tags": {"type": "array", "items": ["null", "string"]},
        "counts": {"type": "map", "values": "long"},
        "kind": {"type": "enum", "name": "kind", "symbols": ["A", "B"]},
        "hash": {"type": "fixed", "name": "hash", "size": 2},
        "one": inner,
        "other": ["null", "inner"],
    }
    record = {
        "at": datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
        "day": datetime.date(2024, 2, 29),
        "price": Decimal("1.25"),
        "tags": ["a", None],
        "counts": {"a": 1},
        "kind": "B",
        "hash": b"ab",
        "one": {"x": 1},
        "other": None,
    }
    land_bytes(zone, "f", avro([record], **types))
    log = log_of(zone, {"format": "avro"})
    assert rows(log) == [{**record, "counts": [("a", 1)]}]
    assert log.table.schema.field("price") == pa.field("price", pa.decimal128(10, 2), nullable=False)
    assert log.table.schema.field("other").nullable


@pytest.mark.parametrize("kind", ["parquet", "arrow", "avro", "json", "csv"])
def test_a_file_of_which_no_column_is_the_tables_gives_no_rows_of_nulls(zone: Path, kind: str) -> None:
    other = pa.table({"ID": [1, 2], "Name": ["a", "b"]})
    data = {
        "parquet": parquet(other),
        "arrow": arrow(other),
        "avro": avro(other.to_pylist(), ID="long", Name="string"),
        "json": b'{"ID": 1, "Name": "a"}',
        "csv": b"ID,Name\n1,a\n",
    }
    land_bytes(zone, "a", data[kind])
    log = log_of(zone, {"format": kind, "extra-columns": "ignore", **COLUMNS})
    found, [bad] = bad_of(log)
    assert found == []
    assert "none of" in bad.error
    assert "ID" in bad.error
