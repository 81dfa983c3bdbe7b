from __future__ import annotations

import datetime
import pickle
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from laketier.spi import And, ConfigError, Leaf, Not, Op, Or, ScanRequest, SnapshotNotFound, pack, to_arrow, unpack
from laketier_conformance.lake import tick
from laketier_lance.filters import to_sql
from laketier_verification.lakes import append, lake_at, read_all

UTC = datetime.UTC


def test_splits_of_small_fragments_are_read_together(make_table):
    table = make_table(split_rows=9)
    source = table.storage.source(table.info)
    for epoch in range(17):
        table.append(epoch, epoch * 2, epoch * 2 + 1)
        if epoch < 16:
            assert [split.rows for split in source.plan(ScanRequest()).splits] == [2] * (epoch + 1)
    assert [split.rows for split in source.plan(ScanRequest()).splits] == [8, 8, 8, 8, 2]
    assert table.scan().column("id").to_pylist() == list(range(34))


def test_source_and_splits_cross_to_an_executor(table):
    table.append(0, 1, 2)
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest(filters=(Leaf("id", Op.GT, 1),)))
    source = pickle.loads(pickle.dumps(source))  # noqa: S301 - as Spark does
    split = unpack(source.split_serializer, pack(source.split_serializer, plan.splits[0]))
    assert [batch.num_rows for batch in source.read(split, plan.schema)] == [1]


def test_an_empty_table_has_no_splits(table):
    plan = table.storage.source(table.info).plan(ScanRequest(limit=1))
    assert (plan.splits, plan.snapshot_id, plan.schema.names) == ((), 1, ["id", "name"])


def test_columns_come_in_the_order_asked_for(table):
    table.append(0, 1)
    assert table.scan(columns=("name", "id")).to_pylist() == [{"name": "n1", "id": 1}]
    for request in ({"columns": ("id", "nope")}, {"filters": (Leaf("nope", Op.IS_NULL),)}):
        with pytest.raises(ConfigError, match="nope"):
            table.scan(**request)


def test_no_columns_at_all_still_count(table):
    table.append(0, 1, 2, 3)
    table.open().delete("id = 2")
    source = table.storage.source(table.info)
    for filters, rows in (((), 2), ((Leaf("id", Op.GT, 1),), 1)):
        plan = source.plan(ScanRequest(columns=(), filters=filters))
        assert sum(b.num_rows for split in plan.splits for b in source.read(split, plan.schema)) == rows


def test_deleted_rows_do_not_show_and_are_not_counted(table):
    table.append(0, 1, 2, 3)
    table.open().delete("id = 2")
    assert table.scan().column("id").to_pylist() == [1, 3]
    assert [split.rows for split in table.storage.source(table.info).plan(ScanRequest()).splits] == [2]


def test_a_column_added_later_reads_as_null(table):
    table.append(0, 1)
    table.open().add_columns(pa.schema([pa.field("more", pa.int32())]))
    assert table.scan().to_pylist() == [{"id": 1, "name": "n1", "more": None}]
    assert table.scan(snapshot_id=2).to_pylist() == [{"id": 1, "name": "n1"}]


@pytest.mark.every(2)
@pytest.mark.parametrize("limit", [0, 1, 3, 4, 100])
def test_a_limit_is_planned_where_nothing_is_filtered(make_table, limit):
    table = make_table(split_rows=2)
    for epoch in range(4):
        table.append(epoch, epoch * 2, epoch * 2 + 1)
    plan = table.storage.source(table.info).plan(ScanRequest(limit=limit))
    assert sum(split.rows for split in plan.splits) == min(limit, 8)
    assert table.scan(limit=limit).num_rows == min(limit, 8)


@pytest.mark.parametrize("file_version", ["2.0", "2.1"])
def test_columns_of_blobs_are_read_as_bytes(make_table, file_version):
    """Of a dataset that another tool made so: its rows, and ours."""
    table = make_table()
    blobs = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table({"id": [1, 2], "blob": [b"one", None]}, schema=pa.schema([pa.field("id", pa.int64()), blobs]))
    lance.write_dataset(rows, table.info.location, mode="overwrite", data_storage_version=file_version)
    ours = pa.record_batch([pa.array([3, 4]), pa.array([b"", b"four"], pa.large_binary())], names=["id", "blob"])
    lake = lake_at(Path(table.info.location).parents[1], "lance", str(table.info.path))
    append(lake, ours)
    found = read_all(lake)
    assert found.sort_by("id").to_pydict() == {"id": [1, 2, 3, 4], "blob": [b"one", None, b"", b"four"]}
    (stored,) = lance.dataset(table.info.location).take_blobs("blob", indices=[3])
    assert stored.readall() == b"four", "our rows are blobs, too"


def test_a_limit_behind_a_filter_bounds_each_split(make_table):
    table = make_table(split_rows=4)
    table.append(0, *range(4))
    table.append(1, *range(4, 8))
    plan = table.storage.source(table.info).plan(ScanRequest(filters=(Leaf("id", Op.GE, 2),), limit=1))
    assert [split.limit for split in plan.splits] == [1, 1]
    assert table.scan(filters=(Leaf("id", Op.GE, 2),), limit=1).column("id").to_pylist() == [2, 4]


def test_a_limit_waits_for_filters_that_the_reader_applies(make_table):
    table = make_table(pa.schema([("f", pa.float64())]))
    rows = pa.record_batch({"f": [1.0, float("nan"), 2.0]})
    table.round(0).commit([table.stage(rows)])
    request = ScanRequest(filters=(Leaf("f", Op.GT, 1.0),), limit=1)
    plan = table.storage.source(table.info).plan(request)
    assert (plan.remaining, plan.splits[0].limit, plan.splits[0].rows) == (request.filters, None, 3)


def test_time_travel_by_version_and_by_moment(table):
    for epoch in range(4):
        table.append(epoch, epoch)
    history = table.storage.history(table.info).snapshots(10)
    assert [line.snapshot_id for line in history] == [5, 4, 3, 2, 1]
    assert [(line.pipeline, line.epoch, line.rows) for line in history[:-1]] == [("p", e, 1) for e in (3, 2, 1, 0)]
    assert table.storage.history(table.info).snapshots(2) == history[:2]
    moments = [line.committed_at for line in reversed(history)]
    assert moments == sorted(moments)
    for version, (moment, following) in enumerate(pairwise([*moments, moments[-1] + 10]), start=1):
        assert table.scan(snapshot_id=version).num_rows == version - 1
        if moment < following:
            assert table.scan(as_of=moment).num_rows == version - 1
            assert table.scan(as_of=following - 1).num_rows == version - 1
    with pytest.raises(SnapshotNotFound):
        table.scan(as_of=moments[0] - 1)
    for unknown in (99, 0, -1, 2**64):
        with pytest.raises(SnapshotNotFound):
            table.scan(snapshot_id=unknown)
    with pytest.raises(ConfigError):
        table.scan(snapshot_id=1, as_of=1)


def test_a_moment_between_a_tagged_version_and_those_that_are_left(table):
    """Which one was there then was cleaned up: the tagged one is no answer. At its own moment it is."""
    for epoch in range(4):
        table.append(epoch, epoch)
        tick()
    lines = {line.snapshot_id: line for line in table.storage.history(table.info).snapshots(10)}
    dataset = table.open()
    dataset.tags.create("kept", 2)
    dataset.cleanup_old_versions(datetime.timedelta(0), error_if_tagged_old_versions=False)
    assert [line.snapshot_id for line in table.storage.history(table.info).snapshots(10)] == [5, 2]
    assert table.scan(as_of=lines[2].committed_at)["id"].to_pylist() == [0]
    assert table.scan(as_of=lines[5].committed_at)["id"].to_pylist() == [0, 1, 2, 3]
    for moment in (lines[2].committed_at + 1, lines[3].committed_at, lines[4].committed_at):
        with pytest.raises(SnapshotNotFound, match="between 2 and 5 are gone"):
            table.scan(as_of=moment)


def test_a_moment_is_the_time_of_the_clock(table):
    now = datetime.datetime.now(UTC).timestamp() * 1000
    assert abs(table.storage.history(table.info).snapshots(1)[0].committed_at - now) < 60_000


def test_versions_that_were_cleaned_up_are_not_found(table):
    table.append(0, 1)
    table.append(1, 2)
    table.open().cleanup_old_versions(older_than=datetime.timedelta(0))
    with pytest.raises(SnapshotNotFound):
        table.scan(snapshot_id=2)
    assert [line.snapshot_id for line in table.storage.history(table.info).snapshots(10)] == [3]


# Values that are each other's neighbours, in every type that is pushed, and one that is not.
VALUES = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 127, None]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1, None]),
    "u64": (pa.uint64(), [0, 1, 2**53 + 1, 2**63, 2**64 - 1, None]),
    "s": (pa.string(), ["", "a", "a'b\"`\\%_", "ab", "ü", None]),
    "ls": (pa.large_string(), ["", "a", "A", "a\n", "z", None]),
    "b": (pa.bool_(), [True, False, True, False, True, None]),
    "d": (pa.date32(), [datetime.date(1, 1, 1), *[datetime.date(2026, 11, day) for day in (20, 21, 22, 23)], None]),
    **{
        f"t{unit}{'z' if zone else ''}": (
            pa.timestamp(unit, zone),
            [
                *[datetime.datetime(2026, 11, 21, 8, 30, s, tzinfo=UTC if zone else None) for s in (0, 1, 2)],
                datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC if zone else None),
                datetime.datetime(2200, 1, 1, tzinfo=UTC if zone else None),
                None,
            ],
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "Europe/Berlin")
    },
    "dec": (
        pa.decimal128(20, 2),
        [*[Decimal(t) for t in ("-1.00", "0.00", "0.01", "1.10", "999999999999999999.99")], None],
    ),
    "f": (pa.float64(), [float("nan"), -0.0, 0.0, 1.5, float("inf"), None]),
}


@pytest.fixture
def values(make_table):
    schema = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
    table = make_table(schema)
    rows = pa.record_batch([pa.array(v, kind) for kind, v in VALUES.values()], schema=schema)
    table.round(0).commit([table.stage(rows)])
    return table


def predicates():
    for name, (_, values) in VALUES.items():
        known = [value for value in values if value is not None]
        for value in known:
            for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE):
                yield Leaf(name, op, value)
        yield Leaf(name, Op.IN, (known[0], known[2]))
        yield Leaf(name, Op.IN, (known[0], None))
        yield Leaf(name, Op.IS_NULL)
        yield Leaf(name, Op.NOT_NULL)
    for prefix in ("", "a", "a'b\"", "a'b\"`\\%", "_", "%", "ü"):
        yield Leaf("s", Op.STARTS_WITH, prefix)
        yield Leaf("ls", Op.STARTS_WITH, prefix)


def typed(predicate):
    """The predicate with literals of its columns' types, as Arrow compares no others."""
    match predicate:
        case And(children=children) | Or(children=children):
            return type(predicate)(tuple(map(typed, children)))
        case Not(child=child):
            return Not(typed(child))
        case Leaf(op=Op.IN, value=values):
            kind = VALUES[predicate.column][0]
            return replace(predicate, value=tuple(None if v is None else pa.scalar(v, kind) for v in values))
        case Leaf(op=Op.IS_NULL | Op.NOT_NULL | Op.STARTS_WITH):
            return predicate
        case Leaf(value=value):
            return replace(predicate, value=pa.scalar(value, VALUES[predicate.column][0]))


def test_what_is_pushed_keeps_exactly_the_rows_that_arrow_keeps(values):
    schema = values.open().schema.remove_metadata()
    everything, dataset = pads.dataset(values.scan()), values.open()
    leaves = [leaf for leaf in predicates() if to_sql(leaf, schema) is not None]
    assert {leaf.column for leaf in leaves} == set(VALUES)
    partner = Leaf("i8", Op.GT, 0)
    for leaf in leaves:
        for predicate in (leaf, Not(leaf), Or((leaf, partner)), Not(And((leaf, partner)))):
            sql = to_sql(predicate, schema)
            found = dataset.to_table(filter=sql, columns=["i8"])
            assert found.equals(everything.to_table(filter=to_arrow(typed(predicate)), columns=["i8"])), (
                predicate,
                sql,
            )


def test_what_lance_might_see_differently_is_left_to_the_reader(values):
    schema = values.open().schema
    left = [
        Leaf("f", Op.GT, 1.0),
        Leaf("i8", Op.EQ, 1.5),
        Leaf("i8", Op.EQ, True),
        Leaf("i8", Op.LT, 300),
        Leaf("i64", Op.IN, ()),
        Leaf("s", Op.EQ, 1),
        Leaf("d", Op.EQ, datetime.datetime(2026, 11, 21)),
        Leaf("tus", Op.EQ, datetime.datetime(2026, 11, 21, tzinfo=UTC)),
        Leaf("ts", Op.EQ, datetime.datetime(2026, 11, 21, 1, 1, 1, 1)),
        Leaf("dec", Op.EQ, Decimal("0.001")),
        Leaf("u64", Op.EQ, 2**64 - 1),
        Leaf("nope", Op.IS_NULL),
        Or((Leaf("f", Op.GT, 1.0), Leaf("i8", Op.GT, 1))),
        Not(Leaf("f", Op.EQ, 0.0)),
    ]
    assert [to_sql(predicate, schema) for predicate in left] == [None] * len(left)


def test_a_filter_is_taken_in_parts(values):
    request = ScanRequest(columns=("i8",), filters=(Leaf("f", Op.GT, 1.0), Leaf("i8", Op.GE, 1)))
    plan = values.storage.source(values.info).plan(request)
    assert plan.remaining == (Leaf("f", Op.GT, 1.0),)
    assert values.scan(columns=("i8",), filters=request.filters).column("i8").to_pylist() == [1, 127]
