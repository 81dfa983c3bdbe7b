"""Column metrics: no reader that prunes by them loses a row."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.kit.parquet import encodings
from laketier_iceberg.metrics import FileMetrics, collect, leaves
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.types import to_arrow, to_iceberg

_STRINGS = st.one_of(
    st.text(max_size=4),
    st.text(min_size=14, max_size=20),
    st.sampled_from(["\ud7ff" * 17, "\U0010ffff" * 20, "a" * 16 + "\U0010ffff", "é" * 40, "x" * 5000]),
)
_TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "b": (pa.bool_(), st.booleans()),
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float32(), st.floats(width=32)),
    "d": (pa.float64(), st.floats()),
    "n5": (pa.decimal128(5, 2), st.decimals(-999, 999, places=2)),
    "n15": (pa.decimal128(15, 2), st.decimals(-(10**12), 10**12, places=2)),
    "n30": (pa.decimal128(30, 3), st.decimals(-(10**26), 10**26, places=3)),
    "day": (pa.date32(), st.dates()),
    "t": (pa.time64("us"), st.times()),
    "ts": (pa.timestamp("us"), st.datetimes()),
    "tz": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    "s": (pa.string(), _STRINGS),
    "y": (pa.binary(), st.one_of(st.binary(max_size=4), st.sampled_from([b"\xff" * 20, b"a" * 16 + b"\xff"]))),
    "x": (pa.binary(2), st.binary(min_size=2, max_size=2)),
}


def _metrics(table: pa.Table, group: int = 3, properties: dict[str, str] | None = None) -> tuple[Any, FileMetrics, Any]:
    """Write a table as the plugin does; its Iceberg schema, our metrics, and the footer."""
    schema = to_iceberg(table.schema)
    arrow = to_arrow(schema)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, arrow, store_decimal_as_integer=True, **encodings(arrow)) as writer:
        writer.write_table(table.cast(arrow), row_group_size=group)
    footer = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata
    columns = leaves(arrow)
    clean = {
        leaf.field_id
        for leaf in columns
        if pa.types.is_floating(leaf.type)
        and not any(v is not None and math.isnan(v) for v in table.column(leaf.name).to_pylist())
    }
    return schema, FileMetrics.from_json(collect(footer, columns, properties or {}, clean).to_json()), footer


@pytest.mark.parametrize("name", _TYPES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_value_is_within_the_bounds_and_counted(name: str, data: st.DataObject) -> None:
    from pyiceberg.conversions import from_bytes, to_bytes

    kind, values = _TYPES[name]
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=10))
    schema, metrics, _ = _metrics(pa.table({name: pa.array(rows, kind)}))
    iceberg = schema.fields[0].field_type
    column = metrics.columns[1]
    there = [row for row in rows if row is not None]
    assert column.values == len(rows)
    assert column.nulls == len(rows) - len(there)
    if not there:
        assert column.lower is None
        assert column.upper is None
    for bound, is_lower in ((column.lower, True), (column.upper, False)):
        if bound is None:
            continue
        limit = from_bytes(iceberg, bound)
        for row in there:
            # The round trip gives the value as pyiceberg compares it.
            value = from_bytes(iceberg, to_bytes(iceberg, row))
            assert (limit <= value) if is_lower else (limit >= value)
    if name in ("f", "d") and any(math.isnan(row) for row in there):
        assert column.lower is None
        assert column.nans is None


def test_ordinary_files_have_the_metrics_that_pyiceberg_gives_them() -> None:
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )

    table = pa.table(
        {
            "b": [True, None, False, True],
            "i": pa.array([3, None, -5, 7], pa.int32()),
            "d": [1.5, None, -2.5, 0.25],
            "n": pa.array([Decimal("1.25"), Decimal("-7.5"), None, None], pa.decimal128(9, 2)),
            "w": pa.array([Decimal("1.25"), Decimal("-7.5"), None, None], pa.decimal128(30, 2)),
            "day": [dt.date(2020, 1, 1), None, dt.date(1969, 1, 1), None],
            "ts": [dt.datetime(2020, 1, 1, 1, 2, 3, 4), None, dt.datetime(1969, 1, 1), None],
            "s": ["é" * 20, None, "abc", "zzzzzzzzzzzzzzzzzzzzzzz"],
            "y": [b"a" * 30, None, b"abc", b"\xff" * 30],
            "st": [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 5, "b": "z"}],
            "l": [[1, 2], None, [], [3]],
        }
    )
    schema, ours, footer = _metrics(table, group=2)
    theirs = data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(schema, {}), parquet_path_to_id_mapping(schema)
    ).to_serialized_dict()
    assert list(ours.split_offsets) == theirs["split_offsets"]
    assert {i: m.size for i, m in ours.columns.items()} == theirs["column_sizes"]
    inside_list = {leaf.field_id for leaf in leaves(to_arrow(schema)) if leaf.repeated}
    for ours_of, key in (
        (lambda m: m.values, "value_counts"),
        (lambda m: m.nulls, "null_value_counts"),
        (lambda m: m.lower, "lower_bounds"),
        (lambda m: m.upper, "upper_bounds"),
    ):
        found = {i: ours_of(m) for i, m in ours.columns.items() if ours_of(m) is not None}
        # pyiceberg leaves the bounds of nested columns out, as they are rarely looked at.
        known = {i: v for i, v in theirs[key].items() if i not in inside_list}
        assert {i: v for i, v in found.items() if i in known} == known
        assert inside_list.isdisjoint(found)


def test_a_bound_that_one_row_group_does_not_have_is_no_bound_of_the_file() -> None:
    """Parquet leaves out values over 4096 bytes; pyiceberg then takes the other groups' maximum for the file's."""
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )

    table = pa.table({"s": ["a", "z" * 5000]})
    schema, ours, footer = _metrics(table, group=1)
    theirs = data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(schema, {}), parquet_path_to_id_mapping(schema)
    ).to_serialized_dict()
    assert theirs["upper_bounds"] == {1: b"a"}
    assert ours.columns[1].upper is None


@pytest.mark.parametrize(
    ("mode", "has_counts", "upper"),
    [("none", False, None), ("counts", True, None), ("full", True, b"abcdefgh"), ("truncate(2)", True, b"ac")],
)
def test_the_tables_own_metrics_modes_are_followed(mode: str, has_counts: bool, upper: bytes | None) -> None:
    table = pa.table({"s": ["abcdefgh"]})
    for properties in (
        {"write.metadata.metrics.default": mode},
        {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.s": mode},
    ):
        _, metrics, _ = _metrics(table, properties=properties)
        assert (metrics.columns[1].values is not None) is has_counts
        assert metrics.columns[1].upper == upper


_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _TYPES.items()])


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, pa.Table]:
    """Twelve files with three row groups each, of rows of every type, and the rows themselves."""
    from laketier.spi import LakeStorageConfig, TableDescriptor, TablePath, Token, WriterInitContext, new_attempt_id
    from laketier.tiering import TieringRound
    from laketier_iceberg.loading import load
    from laketier_iceberg.storage import IcebergStorage

    warehouse = tmp_path_factory.mktemp("metrics")
    storage = IcebergStorage(LakeStorageConfig(str(warehouse), IcebergOptions(row_group_rows=2, target_file_rows=6)))
    info = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(_SCHEMA))
    factory = storage.tiering_factory(info)
    writer = factory.create_writer(WriterInitContext(new_attempt_id()))
    rows = pa.RecordBatch.from_pylist([_row(i) for i in range(72)], schema=_SCHEMA)
    writer.write(rows)
    result = writer.complete()
    assert len(result.files) == 12
    TieringRound(factory, token=Token("p", "r", 0)).commit([result])
    table = load(storage._settings, info.path)
    return (storage.source(info), table), pa.Table.from_batches([rows])


def _row(i: int) -> dict[str, Any]:
    """Rows that rise, so that files have ranges of their own; with nulls, NaN, infinities and long strings."""
    start = dt.datetime(1969, 12, 1, tzinfo=dt.UTC)
    row = {
        "b": i > 36,
        "i": i - 36,
        "l": (i - 36) * 10**12,
        "f": math.nan if i in (3, 40) else i / 4 - 9,
        "d": {20: math.inf, 21: -math.inf, 30: -0.0}.get(i, i / 4 - 9),
        "n5": Decimal(i - 36) / 4,
        "n15": Decimal(i - 36) * 10**9,
        "n30": Decimal(i - 36) * 10**20,
        "day": start.date() + dt.timedelta(days=i),
        "t": dt.time(i // 3, i % 60, 1, i),
        "ts": (start + dt.timedelta(hours=13 * i, microseconds=i)).replace(tzinfo=None),
        "tz": start + dt.timedelta(hours=13 * i, microseconds=i),
        "s": chr(ord("A") + i) * (1 + 9 * (i % 3)) + ("\U0010ffff" if i % 5 == 0 else "é"),
        "y": bytes([i + 60]) * (1 + 9 * (i % 3)),
        "x": bytes([i, 255 - i]),
    }
    if i % 7 == 0:
        row |= dict.fromkeys(list(row)[i % 3 :: 3])
    return row


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_filter_finds_all_rows_in_every_reader(pruned: Any, data: st.DataObject) -> None:
    from laketier.spi import And, Leaf, Not, Op, Or, ScanRequest
    from laketier.spi import to_arrow as predicate_to_arrow

    (source, _), rows = pruned

    def leaf() -> Leaf:
        name = data.draw(st.sampled_from(sorted(_TYPES)))
        op = data.draw(st.sampled_from(list(Op)))
        if op is Op.STARTS_WITH:
            return Leaf("s", op, data.draw(st.sampled_from(["A", "B", "ZZZ", "é", ""])))
        pool = [v for v in rows[name].to_pylist() if v is not None and v == v]
        if op in (Op.IS_NULL, Op.NOT_NULL):
            return Leaf(name, op)
        if op is Op.IN:
            return Leaf(name, op, tuple(data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))))
        return Leaf(name, op, data.draw(st.sampled_from(pool)))

    shape = data.draw(st.sampled_from(["leaf", "and", "or", "not", "not-or", "not-and"]))
    predicate: Any = {
        "leaf": leaf,
        "and": lambda: And((leaf(), leaf())),
        "or": lambda: Or((leaf(), Not(leaf()))),
        "not": lambda: Not(leaf()),
        "not-or": lambda: Not(Or((leaf(), leaf()))),
        "not-and": lambda: Not(And((leaf(), leaf()))),
    }[shape]()
    expression = predicate_to_arrow(predicate)
    expected = rows.filter(expression)["i"].to_pylist()
    plan = source.plan(ScanRequest(filters=(predicate,)))
    batches = [b for split in plan.splits for b in source.read(split, plan.schema)]
    read = pa.Table.from_batches(batches, schema=plan.schema)
    for left in plan.remaining:
        read = read.filter(predicate_to_arrow(left))
    assert sorted(read["i"].to_pylist(), key=str) == sorted(expected, key=str)


_TEXTS = [
    "i = -3", "i > 30", "i <= -36", "l >= 30000000000000", "d > 8.5", "d < -8", "f = 0.25", "n5 < -8.50",
    "n15 > 33000000000", "n30 = 100000000000000000000", "day < '1969-12-05'", "ts >= '1970-01-07T00:00:00'",
    "tz < '1969-12-02T00:00:00+00:00'", "s >= 'w'", "s < 'C'", "b = true", "i is null", "s is not null",
]  # fmt: skip


@pytest.mark.parametrize("text", _TEXTS)
def test_pyiceberg_and_duckdb_find_the_same_rows(pruned: Any, text: str) -> None:
    (_, table), rows = pruned
    connection = duckdb.connect()
    connection.register("rows", rows.drop_columns(["x", "t"]))
    sql = text if "tz" not in text else text.replace("'1969", "TIMESTAMPTZ '1969")
    # DuckDB and Spark order NaN above all numbers; such rows are in files that no reader may skip.
    wanted = connection.execute(f"SELECT i FROM rows WHERE {sql}").fetchall()
    files = [task.file.file_path for task in table.scan(row_filter=text).plan_files()]
    connection.execute("SET TimeZone = 'UTC'")
    listed = ", ".join(f"'{path}'" for path in files) or "''"
    found = connection.execute(f"SELECT i FROM read_parquet([{listed}]) WHERE {sql}").fetchall()
    assert sorted(found, key=str) == sorted(wanted, key=str)
    if "d >" in text or "f " in text:
        return  # pyiceberg itself filters without NaN
    direct = table.scan(row_filter=text).to_arrow()["i"].to_pylist()
    assert sorted([(value,) for value in direct], key=str) == sorted(wanted, key=str)


def test_files_are_really_skipped(pruned: Any) -> None:
    (_, table), _ = pruned
    assert len(list(table.scan().plan_files())) == 12
    for text in ("i > 34", "s >= 'w'", "ts >= '1970-01-08T00:00:00'", "n30 < -3400000000000000000000", "d < -8"):
        assert len(list(table.scan(row_filter=text).plan_files())) <= 3, text


def test_the_data_files_are_plain_parquet_for_duckdb(pruned: Any) -> None:
    (_, table), rows = pruned
    folder = Path(table.metadata.location, "data")
    totals = duckdb.sql(f"SELECT count(*), sum(i) FROM read_parquet('{folder}/*.parquet')").fetchall()
    assert totals == [(72, sum(v for v in rows["i"].to_pylist() if v is not None))]


def test_files_with_nan_are_planned_for_engines_that_order_it_above_all_numbers(pruned: Any) -> None:
    """Spark does; DuckDB too, except on Parquet files, whose own statistics leave NaN out."""
    (_, table), _ = pruned
    files = [task.file.file_path for task in table.scan(row_filter="f > 1000").plan_files()]
    found = [value for path in files for value in pq.read_table(path, columns=["f"])["f"].to_pylist()]
    assert sum(value is not None and math.isnan(value) for value in found) == 2


def test_polars_finds_the_same_rows(pruned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    (_, table), rows = pruned
    frame = pl.scan_iceberg(table)
    assert frame.select("i", "l").collect().height == rows.num_rows
    assert sorted(frame.filter(pl.col("i") > 30).select("i").collect()["i"].to_list()) == [31, 32, 33, 35]
    assert frame.filter(pl.col("s") >= "w").select("s").collect().height == sum(
        value is not None and value >= "w" for value in rows["s"].to_pylist()
    )


def test_a_long_text_is_cut_in_both_bounds() -> None:
    _, metrics, _ = _metrics(pa.table({"s": ["a" * 40, "b" * 40]}))
    [column] = metrics.columns.values()
    assert column.lower == b"a" * 16
    assert column.upper == b"b" * 15 + b"c"


def test_a_file_without_statistics_has_sizes_and_numbers_of_values() -> None:
    """As a writer leaves it that was told to keep none: nulls are not known then, and bounds neither."""
    schema = to_arrow(to_iceberg(pa.schema([("i", pa.int32())])))
    sink = io.BytesIO()
    pq.write_table(pa.table({"i": pa.array([1, None], pa.int32())}).cast(schema), sink, write_statistics=False)
    footer = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata
    [column] = collect(footer, leaves(schema), {}, set()).columns.values()
    assert (column.values, column.nulls, column.lower, column.upper) == (2, None, None, None)
