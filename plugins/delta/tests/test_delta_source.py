from __future__ import annotations

import json
import pickle
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from laketier.bucketing import assigner_for
from laketier.spi import (
    AddColumn,
    And,
    BucketSpec,
    ConfigError,
    CorruptTable,
    IncompatibleData,
    IncompatibleTable,
    Leaf,
    Not,
    Op,
    Or,
    ScanRequest,
    SnapshotNotFound,
    pack,
    to_arrow,
    unpack,
)
from laketier_delta.layout import relative_path

EVERYTHING = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("map", pa.map_(pa.string(), pa.int32())),
        ("nest", pa.struct([("a", pa.float32()), ("b", pa.binary())])),
        ("dec", pa.decimal128(20, 3)),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
    ]
)


def test_rows_come_back_as_written_through_us_and_three_other_readers(lake):
    rows = pa.Table.from_pylist(
        [
            {
                "id": 1,
                "tags": ["x", None],
                "map": [("k", 1)],
                "nest": {"a": 0.5, "b": b"\x00"},
                "dec": Decimal("12345678901234567.125"),
                "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
                "flag": True,
            },
            {"id": 2},
        ],
        schema=EVERYTHING,
    )
    lake.create(EVERYTHING)
    lake.append(rows)
    assert lake.read() == rows
    assert DeltaTable(lake.uri).to_pyarrow_table().cast(EVERYTHING).to_pylist() == rows.to_pylist()
    flat = rows.drop_columns(["map"])
    assert pl.read_delta(lake.uri).drop("map").to_arrow().select(["id", "dec", "at", "flag"]).to_pylist() == (
        flat.select(["id", "dec", "at", "flag"]).to_pylist()
    )
    files = [split.plain_parquet for split in lake.storage.source(lake.table).plan(ScanRequest()).splits]
    assert duckdb.read_parquet(files).order("id").fetchall()[0][0] == 1


PARTITION_VALUES = {
    "text": (pa.string(), ["plain", "a b", "ü/€ %20=:", None, "__x", ".", "..", "null", "'\"\\", "🎉"]),
    "int": (pa.int32(), [-5, 0, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "at": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC), datetime(1969, 1, 1, tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [datetime(2026, 1, 1, 5, 6, 7, 8), datetime(1969, 1, 1), None]),
}


@pytest.mark.parametrize("name", PARTITION_VALUES)
def test_partition_values_come_back_with_their_type(lake, support, name):
    kind, values = PARTITION_VALUES[name]
    schema = pa.schema([("id", pa.int64()), ("part", kind)])
    lake.create(schema, "part")
    rows = pa.Table.from_pylist([{"id": n, "part": value} for n, value in enumerate(values)], schema=schema)
    lake.append(rows)
    assert lake.read().sort_by("id") == rows
    assert DeltaTable(lake.uri).to_pyarrow_table().select(["id", "part"]).sort_by("id").to_pylist() == rows.to_pylist()
    for path in Path(lake.uri).rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            assert pq.read_schema(path).names == ["id"]
    for number, value in enumerate(values):
        leaf = Leaf("part", Op.IS_NULL) if value is None else Leaf("part", Op.EQ, value)
        plan = lake.storage.source(lake.table).plan(ScanRequest(filters=(leaf,)))
        assert plan.remaining == ()
        assert lake.read(leaf)["id"].to_pylist() == [number]


@pytest.mark.parametrize("column", ["ns:k", "a\\b", "~k", "k v%2e"])
def test_a_partition_column_of_any_name_that_delta_rs_gives_a_folder(lake, column):
    rows = pa.table({column: ["a", "..", "x\\..\\y", ":/", "%2f"], "i": [1, 2, 3, 4, 5]})
    write_deltalake(lake.uri, rows, partition_by=[column])
    assert lake.read().sort_by("i").equals(rows)
    assert DeltaTable(lake.uri).to_pyarrow_table().sort_by("i").equals(rows)


@pytest.mark.parametrize("scale", [0, 2, 18])
def test_decimals_whose_bounds_delta_rs_rounds_are_found(lake, scale):
    """Its statistics have them as floats, and without a scale as integers of 64 bits, of which the greatest stands for
    each greater one."""
    kind = pa.decimal128(38, scale)
    values = [Decimal(text).scaleb(-scale) for text in ("-7", "9007199254740993", "10000000000000000001")]
    for number, value in enumerate(values):
        write_deltalake(lake.uri, pa.table({"i": [number], "d": pa.array([value], kind)}), mode="append")
    for number, value in enumerate(values):
        for op, wanted in ((Op.EQ, {number}), (Op.GE, set(range(number, 3))), (Op.LE, set(range(number + 1)))):
            assert wanted <= set(lake.read(Leaf("d", op, value))["i"].to_pylist()), f"{op} {value}"


@pytest.mark.parametrize("path", ["file:/tmp/src/x.parquet", "file:///tmp/x.parquet", "/tmp/x.parquet", "s3a://b/x"])
def test_a_shallow_clone_is_called_one(path):
    with pytest.raises(IncompatibleTable, match="shallow clone"):
        relative_path(path)


def test_special_partition_values_through_polars_and_duckdb(lake):
    values = PARTITION_VALUES["text"][1]
    lake.create(pa.schema([("id", pa.int64()), ("part", pa.string())]), "part")
    lake.append(pa.table({"id": range(len(values)), "part": values}))
    assert pl.read_delta(lake.uri).sort("id")["part"].to_list() == values
    relation = duckdb.from_arrow(DeltaTable(lake.uri).to_pyarrow_dataset())
    assert [row[0] for row in relation.order("id").project("part").fetchall()] == values


@pytest.mark.parametrize(("value", "why"), [("", "null"), ("x" * 300, "long"), ("__HIVE_DEFAULT_PARTITION__", "null")])
def test_partition_values_that_would_change_are_refused(lake, value, why):
    lake.create(pa.schema([("id", pa.int64()), ("part", pa.string())]), "part")
    with pytest.raises(IncompatibleData, match=why):
        lake.append(pa.table({"id": [1], "part": [value]}))
    assert lake.table.snapshot_id == 0
    assert not list(Path(lake.uri).rglob("*.parquet"))


def test_filters_on_partitions_are_done_and_others_remain(lake, support):
    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r")
    for number in range(4):
        lake.append(pa.table({"id": [number, number + 10], "r": ["even" if number % 2 == 0 else "odd", None]}))
    source = lake.storage.source(lake.table)
    even, big = Leaf("r", Op.EQ, "even"), Leaf("id", Op.GE, 12)
    cases = [
        ((even,), 2, ()),
        ((Not(even),), 2, ()),
        ((Or((even, Leaf("r", Op.IS_NULL))),), 6, ()),
        ((big,), 2, (big,)),
        ((And((even, Leaf("id", Op.EQ, 2))),), 1, (And((even, Leaf("id", Op.EQ, 2))),)),
        ((Or((even, big)),), 4, (Or((even, big)),)),
        ((Not(big),), 8, (Not(big),)),
        ((Leaf("r", Op.IN, ("odd", None)),), 2, ()),
        ((Leaf("r", Op.STARTS_WITH, "e"),), 2, ()),
    ]
    for filters, splits, remaining in cases:
        plan = source.plan(ScanRequest(filters=filters))
        assert (len(plan.splits), plan.remaining) == (splits, remaining), filters


@pytest.mark.parametrize("name", ["s", "l", "m"])
def test_whether_a_nested_column_is_null(lake, name):
    """The log counts the nulls of a struct's fields, not its own."""
    kinds = {"s": pa.struct([("a", pa.int64())]), "l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())}
    filled = {"s": {"a": None}, "l": [None], "m": [("k", None)]}[name]
    lake.create(pa.schema([("id", pa.int64()), (name, kinds[name])]))
    for number, value in enumerate([filled, None]):
        lake.append(pa.table({"id": [number], name: pa.array([value], kinds[name])}))
    source = lake.storage.source(lake.table)
    for op, ids in ((Op.IS_NULL, [1]), (Op.NOT_NULL, [0])):
        plan = source.plan(ScanRequest(filters=(Leaf(name, op),)))
        rows = pa.Table.from_batches([rows for split in plan.splits for rows in source.read(split, plan.schema)])
        for predicate in plan.remaining:
            rows = rows.filter(to_arrow(predicate))
        assert rows["id"].to_pylist() == ids


def test_projection_in_any_order_also_to_nothing(lake, support):
    lake.create(pa.schema([("id", pa.int64()), ("v", pa.string()), ("r", pa.string())]), "r")
    lake.append(pa.table({"id": [1, 2], "v": ["a", "b"], "r": ["x", "x"]}))
    assert lake.read(columns=("r", "id")).to_pylist() == [{"r": "x", "id": 1}, {"r": "x", "id": 2}]
    assert lake.read(columns=("r",)).to_pylist() == [{"r": "x"}, {"r": "x"}]
    source = lake.storage.source(lake.table)
    plan = source.plan(ScanRequest(columns=()))
    batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
    assert (sum(batch.num_rows for batch in batches), plan.schema.names) == (2, [])
    with pytest.raises(ConfigError, match="nope"):
        lake.read(columns=("nope",))
    with pytest.raises(ConfigError, match="nope"):
        lake.read(Leaf("nope", Op.EQ, 1))


@pytest.mark.parametrize(("limit", "files"), [(0, 0), (1, 1), (3, 1), (4, 2), (100, 3)])
def test_a_limit_takes_the_files_it_needs_and_cuts_the_last(lake, support, limit, files):
    lake.create()
    for start in (0, 3, 6):
        lake.append(support.ids(start, start + 1, start + 2))
    plan = lake.storage.source(lake.table).plan(ScanRequest(limit=limit))
    assert (len(plan.splits), sum(split.rows for split in plan.splits)) == (files, min(limit, 9))
    assert lake.read(limit=limit).num_rows == min(limit, 9)
    filtered = lake.storage.source(lake.table).plan(ScanRequest(limit=1, filters=(Leaf("id", Op.GE, 0),)))
    assert [split.limit for split in filtered.splits] == [None] * 3


def test_time_travel_by_version_and_by_time(lake, support):
    lake.create()
    moments = []
    for number in range(3):
        lake.epoch(number)
        moments.append(lake.storage.history(lake.table).snapshots(1)[0].committed_at)
        while time.time_ns() // 1_000_000 <= moments[-1]:
            pass
    for number, moment in enumerate(moments):
        assert support.values(lake.read(snapshot_id=number + 1)) == list(range(number + 1))
        assert support.values(lake.read(as_of=moment)) == list(range(number + 1))
    assert lake.read(snapshot_id=0).num_rows == 0
    for request in ({"snapshot_id": 9}, {"snapshot_id": -1}, {"as_of": 1}, {"as_of": -(2**62)}):
        with pytest.raises(SnapshotNotFound):
            lake.read(**request)
    with pytest.raises(ConfigError):
        lake.read(snapshot_id=1, as_of=1)


def test_in_commit_timestamps_count_before_what_a_writer_told(lake, support):
    """As Spark leaves such a table: the clock of who wrote version 2 was ahead, and that of version 3 behind."""
    lake.create()
    for number in range(3):
        lake.epoch(number)
    told = [500, 1_000, 9_000, 1_500]
    for version, moment in enumerate(told):
        entry = Path(lake.uri, "_delta_log", f"{version:020}.json")
        actions = [json.loads(line) for line in entry.read_bytes().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"] |= {"timestamp": moment, "inCommitTimestamp": 1_000 * (version + 1)}
            if "protocol" in action:
                action["protocol"] = {
                    "minReaderVersion": 1,
                    "minWriterVersion": 7,
                    "writerFeatures": ["inCommitTimestamp"],
                }
            if "metaData" in action:
                action["metaData"]["configuration"]["delta.enableInCommitTimestamps"] = "true"
        actions.sort(key=lambda action: "commitInfo" not in action)
        entry.write_text("\n".join(map(json.dumps, actions)))
    listed = {each.snapshot_id: each.committed_at for each in lake.storage.history(lake.table).snapshots(9)}
    assert listed == {0: 1_000, 1: 2_000, 2: 3_000, 3: 4_000}
    for version, moment in listed.items():
        for at in (moment, moment + 999):
            assert support.values(lake.read(as_of=at)) == list(range(version))
    with pytest.raises(SnapshotNotFound):
        lake.read(as_of=999)


def test_an_older_version_has_the_columns_it_had(lake, support):
    lake.create()
    lake.epoch(0)
    lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("extra", pa.int64()))])
    assert lake.read(snapshot_id=1).schema.names == ["id", "v"]


def test_history_says_who_and_what(lake, support):
    lake.create()
    lake.epoch(0, support.ids(1, 2))
    write_deltalake(lake.uri, support.ids(3), mode="append")
    newest, ours, created = lake.storage.history(lake.table).snapshots(10)
    assert (ours.snapshot_id, ours.operation, ours.rows, ours.pipeline, ours.epoch) == (1, "write", 2, "p", 0)
    assert (newest.snapshot_id, newest.rows, newest.pipeline) == (2, 1, None)
    assert created.operation == "create table"
    assert abs(ours.committed_at - time.time() * 1000) < 60_000


def test_plain_parquet_only_where_the_file_has_all_columns(lake, support):
    lake.create()
    lake.epoch(0)
    lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("extra", pa.list_(pa.int64())))])
    lake.epoch(1, pa.table({"id": [1], "extra": [[1]]}))
    write_deltalake(lake.uri, pa.table({"id": [2], "v": ["f"]}), mode="append", schema_mode="merge")
    plans = lake.storage.source(lake.table).plan(ScanRequest()).splits
    plain = [split.plain_parquet for split in plans if split.plain_parquet]
    assert [pq.read_table(path)["id"].to_pylist() for path in plain] == [[1]]
    lake.storage.catalog().drop_table(support.PATH)
    write_deltalake(lake.uri, support.ids(7), mode="append")
    (split,) = lake.storage.source(lake.table).plan(ScanRequest()).splits
    assert split.plain_parquet is not None, "a foreign file with statistics of all columns"
    lake.storage.catalog().drop_table(support.PATH)
    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r")
    lake.append(pa.table({"id": [1], "r": ["x"]}))
    assert lake.storage.source(lake.table).plan(ScanRequest()).splits[0].plain_parquet is None


def test_splits_carry_buckets_and_survive_their_serializer(lake, support):
    spec = BucketSpec(4, ("id",))
    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r", buckets=spec)
    rows = pa.table({"id": range(100), "r": ["x", "y"] * 50})
    lake.append(rows)
    source = pickle.loads(pickle.dumps(lake.storage.source(lake.table)))  # noqa: S301 - as Spark does
    plan = source.plan(ScanRequest())
    assert {split.bucket for split in plan.splits} == {0, 1, 2, 3}
    assert len(plan.splits) == 8
    assigner = assigner_for(lake.table.descriptor)
    seen = 0
    for split in plan.splits:
        split = unpack(source.split_serializer, pack(source.split_serializer, split))
        for batch in source.read(split, plan.schema):
            assert set(assigner.assign(batch).to_pylist()) == {split.bucket}
            seen += batch.num_rows
    assert seen == 100
    lake.append(rows)
    DeltaTable(lake.uri).optimize.compact()
    compacted = source.plan(ScanRequest()).splits
    assert {split.bucket for split in compacted} == {-1}, "compacted files are of no bucket"


@pytest.mark.parametrize("before", [["a"], []])
@pytest.mark.parametrize("now", [["b"], []])
def test_appends_from_before_the_table_was_repartitioned_are_refused(lake, before, now):
    """Their values were read as nulls, of both columns."""
    one, two = ({"id": [i], "a": ["x"], "b": ["y"]} for i in (1, 2))
    write_deltalake(lake.uri, pa.table(one), partition_by=before)
    write_deltalake(lake.uri, pa.table(two), mode="overwrite", schema_mode="overwrite", partition_by=now)
    source, changes = lake.storage.source(lake.table), lake.storage.changes(lake.table)
    if before == now:
        plan = changes.plan(0, 2, skip_changes=True)
        assert [batch.to_pylist() for batch in source.read(plan.splits[0], plan.schema)] == [pa.table(one).to_pylist()]
    else:
        with pytest.raises(IncompatibleTable, match="partitioned by"):
            changes.plan(0, 2, skip_changes=True)


def test_a_range_that_ends_far_beyond_the_table_is_refused_at_once(lake):
    """It was asked for whole: a request for each of its versions."""
    lake.create(pa.schema([("id", pa.int64())]))
    lake.append(pa.table({"id": [1]}))
    with pytest.raises(SnapshotNotFound, match="the newest version is 1"):
        lake.storage.changes(lake.table).plan(0, 1 << 60)


def test_a_missing_data_file_is_named(lake, support):
    lake.create()
    lake.epoch(0)
    source = lake.storage.source(lake.table)
    plan = source.plan(ScanRequest())
    next(Path(lake.uri).glob("*.parquet")).unlink()
    with pytest.raises(CorruptTable, match="missing"):
        list(source.read(plan.splits[0], plan.schema))


def test_an_empty_table_has_no_splits(lake):
    lake.create()
    assert lake.storage.source(lake.table).plan(ScanRequest()).splits == ()
    assert lake.read(Leaf("id", Op.EQ, 1)).num_rows == 0


@pytest.mark.parametrize("kept", [0, 0.5])
def test_a_damaged_data_file_is_named(lake, kept):
    lake.create()
    lake.epoch(0)
    source = lake.storage.source(lake.table)
    plan = source.plan(ScanRequest())
    file = next(Path(lake.uri).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * kept)])
    with pytest.raises(CorruptTable, match=f"{file.name}: a data file is damaged"):
        list(source.read(plan.splits[0], plan.schema))


def test_an_empty_entry_of_the_log_is_no_commit_of_nothing(lake):
    """delta-rs takes it for one, and the table for that without the rows of the commit."""
    lake.create()
    lake.epoch(0)
    lake.epoch(1)
    *_, older, newest = sorted(Path(lake.uri, "_delta_log").glob("*.json"))
    whole = older.read_bytes()
    older.write_bytes(b"")
    with pytest.raises(CorruptTable, match=f"{older.name}: an entry of the Delta log is empty"):
        _ = lake.table
    older.write_bytes(whole)
    newest.write_bytes(b"")
    with pytest.raises(CorruptTable, match=f"{newest.name}: the newest entry of the Delta log is empty"):
        _ = lake.table
