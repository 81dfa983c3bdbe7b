"""Tables whose files do not hold their partition columns: every reader gets them back, ours exactly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.cli.demo.verify import evaluate
from laketier.kit.partition import OddPartitionValues, partition_text
from laketier.spi import AddColumn, BucketSpec, ConfigError, IncompatibleData, Leaf, Op, UnsupportedType, WriteMode
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.outside import OUTSIDE, constant
from laketier_localfile.plugin import LocalFilePlugin

OUT = LocalFileOptions(partition_columns_in_files=False)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], list[Any]]] = {
    "text": (pa.string(), st.text(), ["007", "a/b", "..", "null", "%20", "ä", " "]),
    "wide": (pa.large_string(), st.text(), ["x=y"]),
    "view": (pa.string_view(), st.text(), ["true"]),
    "tiny": (pa.int8(), st.integers(-128, 127), [-128]),
    "number": (pa.int64(), st.integers(-(2**63), 2**63 - 1), [-(2**63), 2**63 - 1]),
    "big": (pa.uint64(), st.integers(0, 2**64 - 1), [2**64 - 1]),
    "flag": (pa.bool_(), st.booleans(), [True, False]),
    "day": (pa.date32(), st.dates(), [date(1, 1, 1), date(9999, 12, 31)]),
    "seconds": (pa.timestamp("s"), st.datetimes().map(lambda at: at.replace(microsecond=0)), [datetime(1969, 12, 31)]),
    "moment": (pa.timestamp("us"), st.datetimes(), [datetime(2026, 11, 24, 1, 2, 3, 4)]),
    "money": (pa.decimal128(38, 10), st.decimals(-(10**20), 10**20, places=10), [Decimal("-0.0000000001")]),
    "small_money": (pa.decimal32(5, 2), st.decimals(-999, 999, places=2), [Decimal("1.50")]),
}


def table_of(make_table: Callable[..., Any], kind: pa.DataType, **options: Any) -> Any:
    schema = pa.schema([("id", pa.int64()), ("key", kind), ("more", pa.string())])
    return make_table(schema=schema, partition_by=("key",), **{"options": OUT, **options})


def rows_of(values: list[Any]) -> list[dict[str, Any]]:
    return [{"id": i, "key": value, "more": f"m{i}"} for i, value in enumerate(values)]


@pytest.mark.parametrize("name", KINDS)
def test_each_type_comes_back_from_the_names_of_folders(make_table: Any, name: str) -> None:
    kind, _, values = KINDS[name]
    table = table_of(make_table, kind)
    rows = rows_of([*values, None])
    table.round(0, rows)
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == rows  # Arrow sorts no views
    assert table.scan().schema == table.schema
    assert table.scan(columns=("key",))["key"].type == kind
    assert sorted(table.scan(columns=("key", "id"))["id"].to_pylist()) == list(range(len(rows)))
    assert table.scan(columns=()).num_rows == len(rows)
    for path in table.plain_files():
        assert pq.read_schema(path).names == ["id", "more"]
    assert table.scan(filters=(Leaf("key", Op.EQ, values[0]),))["id"].to_pylist() == [0]
    assert table.scan(filters=(Leaf("key", Op.IS_NULL),))["id"].to_pylist() == [len(values)]


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_every_value_comes_back_exactly(name: str, data: st.DataObject) -> None:
    kind, values, _ = KINDS[name]
    value = data.draw(values)
    column = pa.array([value], kind)
    assert constant(partition_text(column[0].as_py()), kind, 1).equals(column)


@pytest.mark.parametrize("tool", ["DuckDB", "Polars"])
def test_other_readers_get_the_columns_with_their_types(make_table: Any, tool: str) -> None:
    for name, (kind, _, values) in KINDS.items():
        if name in ("small_money", "seconds", "view"):
            continue
        table = table_of(make_table, kind)
        rows = rows_of([*values, None])
        table.round(0, rows)
        found = evaluate(LocalFilePlugin().open_with(table.info)[tool]).sort_by("id")
        assert found["key"].to_pylist() == [row["key"] for row in rows], (tool, name)
        assert found["more"].to_pylist() == [row["more"] for row in rows]
        shutil.rmtree(table.warehouse)


def test_transforms_leave_their_column_in_the_files(make_table: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
    options = LocalFileOptions(partition_columns_in_files=False, time_pattern="%Y/%m/%d")
    table = make_table(schema=schema, partition_by=("region", "day(ts)"), options=options)
    rows = [{"id": 1, "region": "eu", "ts": None}]
    table.round(0, rows)
    (path,) = table.plain_files()
    assert pq.read_schema(path).names == ["id", "ts"]
    assert str(path.parent.relative_to(table.location)) == "region=eu/null/null/null"
    assert table.scan().to_pylist() == rows


def test_folds_overwrites_buckets_new_columns_and_time_travel(make_table: Any) -> None:
    options = LocalFileOptions(partition_columns_in_files=False, fold_files=2)
    table = table_of(make_table, pa.string(), options=options, buckets=BucketSpec(2, ("id",)))
    for epoch in range(5):
        table.round(epoch, [{"id": epoch, "key": "a", "more": None}, {"id": 10 + epoch, "key": None, "more": None}])
    assert len(table.plain_files()) < 10
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("late", pa.int8()))])
    table.schema = table.info.schema
    table.round(5, [{"id": 99, "key": "b", "more": "m", "late": 1}])
    assert sorted(table.scan()["id"].to_pylist()) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 99]
    assert table.scan(filters=(Leaf("key", Op.EQ, "a"),)).sort_by("id")["id"].to_pylist() == [0, 1, 2, 3, 4]
    table.round(6, [{"id": 1, "key": "z", "more": None, "late": None}], mode=WriteMode.OVERWRITE)
    assert table.scan(columns=("id", "key")).to_pylist() == [{"id": 1, "key": "z"}]
    assert table.scan(snapshot_id=1, columns=("id", "key")).sort_by("id").to_pylist() == [
        {"id": 0, "key": "a"}, {"id": 10, "key": None},
    ]  # fmt: skip


@pytest.mark.parametrize("lost", ["one manifest", "all manifests"])
def test_a_rebuilt_table_has_the_columns_again(make_table: Any, lost: str) -> None:
    table = table_of(make_table, pa.int64())
    rows = rows_of([7, -1])
    table.round(0, rows[:1])
    table.round(1, rows[1:])
    if lost == "one manifest":
        table.log.path(1).unlink()
    else:
        shutil.rmtree(table.location / "_laketier_manifests")
        table.options = LocalFileOptions()
    table.storage.adoption().rebuild(table.path)
    assert table.scan(columns=("id", "key", "more")).sort_by("id").to_pylist() == rows
    table.round(None, [{"id": 2, "key": 5, "more": "m2"}])
    assert table.scan(columns=("id", "key")).sort_by("id").to_pylist()[2] == {"id": 2, "key": 5}


def test_no_split_is_plain_parquet_unless_the_columns_are_left_out(make_table: Any) -> None:
    """Else Spark's own reader would give nulls."""
    from laketier.spi import ScanRequest

    table = table_of(make_table, pa.string(), options=LocalFileOptions(partition_columns_in_files=False, fold_files=0))
    table.round(0, rows_of(["a"]))
    source = table.storage.source(table.info)
    assert [split.plain_parquet for split in source.plan(ScanRequest()).splits] == [None]
    (split,) = source.plan(ScanRequest(columns=("more",))).splits
    assert split.plain_parquet is not None


def test_an_older_laketier_refuses_the_manifests(make_table: Any) -> None:
    """It would read the columns as null."""
    table = table_of(make_table, pa.string())
    table.round(0, rows_of(["a"]))
    for number in range(2):
        assert b'"version":6' in table.log.path(number).read_bytes()


@pytest.mark.parametrize(
    ("options", "partition_by", "error", "match"),
    [
        (OUT, (), ConfigError, "the table has none"),
        (OUT, ("hour(ts)",), ConfigError, "the table has none"),
        (OUT, ("zoned",), UnsupportedType, "do not tell the zone"),
        (OUT, ("id", "ts", "zoned"), ConfigError, "there would be no other"),
        (
            LocalFileOptions(partition_columns_in_files=False, file_format=FileFormatName.JSON),
            ("id",),
            ConfigError,
            "json",
        ),
    ],
)
def test_what_could_not_be_given_back_is_refused_at_create(
    make_table: Any, options: LocalFileOptions, partition_by: tuple[str, ...], error: type[Exception], match: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("zoned", pa.timestamp("us", "UTC"))])
    with pytest.raises(error, match=match):
        make_table(schema=schema, partition_by=partition_by, options=options)


def test_the_choice_belongs_to_the_table(make_table: Any) -> None:
    table = table_of(make_table, pa.string())
    assert table.info.descriptor.properties[OUTSIDE] == "false"
    table.options = LocalFileOptions()
    table.round(0, rows_of(["a"]))
    (path,) = table.plain_files()
    assert pq.read_schema(path).names == ["id", "more"]
    table.options = LocalFileOptions(partition_columns_in_files=True)
    with pytest.raises(ConfigError, match="do not hold their partition columns"):
        table.round(1, rows_of(["a"]))
    table.options = LocalFileOptions(odd_partition_values=OddPartitionValues.ACCEPT)
    with pytest.raises(ConfigError, match="odd-partition-values"):
        table.round(1, rows_of(["a"]))
    table.options = OUT
    with pytest.raises(IncompatibleData, match="can't tell it from null"):
        table.round(1, rows_of([""]))


def test_files_with_the_columns_stay_as_they_were(make_table: Any, tmp_path: Path) -> None:
    table = table_of(make_table, pa.string(), options=LocalFileOptions(partition_columns_in_files=True))
    table.round(0, rows_of(["a"]))
    assert OUTSIDE not in table.info.descriptor.properties
    assert pq.read_schema(table.plain_files()[0]).names == ["id", "key", "more"]
    assert b'"version":1' in table.log.path(1).read_bytes()
    table.options = OUT
    with pytest.raises(ConfigError, match="hold their partition columns"):
        table.round(1, rows_of(["a"]))
