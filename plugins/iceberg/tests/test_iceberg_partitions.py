"""Partition values are those that pyiceberg itself gives the same rows, by its own Python functions and its append."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laketier.spi import (
    AddColumn,
    And,
    BucketSpec,
    ConfigError,
    FeatureNotSupported,
    IncompatibleData,
    Leaf,
    Op,
    Or,
    PartitionField,
    ScanRequest,
    TableDescriptor,
    Transform,
    UnsupportedType,
)
from laketier_iceberg.partitions import PartitionPlan, from_json
from laketier_iceberg.spec import fields_of, to_spec
from laketier_iceberg.types import to_arrow, to_iceberg

_MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
_COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "bool": (pa.bool_(), st.booleans()),
    # Truncating the very least integers wraps, in the JVM as here; pyiceberg's Python does not.
    "int": (pa.int32(), st.integers(-(2**31) + 100, 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63) + 100, 2**63 - 1)),
    "small": (pa.decimal128(7, 2), st.decimals(-99999, 99999, places=2)),
    "large": (pa.decimal128(38, 4), st.decimals(-(10**30), 10**30, places=4)),
    "date": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "time": (pa.time64("us"), st.times()),
    "ts": (pa.timestamp("us"), _MOMENTS),
    "tstz": (pa.timestamp("us", "UTC"), _MOMENTS.map(lambda m: m.replace(tzinfo=dt.UTC))),
    "string": (pa.string(), st.text(max_size=8)),
    "binary": (pa.binary(), st.binary(max_size=8)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
}
_WIDTHS = {Transform.BUCKET: 7, Transform.TRUNCATE: 3}


def _accepted() -> list[PartitionField]:
    schema = pa.schema([(name, kind) for name, (kind, _) in _COLUMNS.items()])
    accepted = []
    for name in _COLUMNS:
        for transform in Transform:
            field = PartitionField(name, transform, _WIDTHS.get(transform))
            try:
                fields_of(TableDescriptor(schema, (field,)))
            except UnsupportedType:
                continue
            accepted.append(field)
    return accepted


ACCEPTED = _accepted()


def test_minutes_are_refused_by_name() -> None:
    """A format of this project has them, and the specification does not."""
    schema = pa.schema([("ts", pa.timestamp("us"))])
    with pytest.raises(UnsupportedType, match=r"minute\(ts\) is no partition of an Iceberg table.*Write hour\(ts\)"):
        fields_of(TableDescriptor(schema, (PartitionField("ts", Transform.MINUTE),)))


def test_every_transform_takes_the_types_of_the_specification() -> None:
    by_transform = {t: {f.column for f in ACCEPTED if f.transform is t} for t in Transform}
    dated = {"date", "ts", "tstz"}
    assert by_transform == {
        Transform.IDENTITY: set(_COLUMNS),
        Transform.BUCKET: set(_COLUMNS) - {"bool"},
        Transform.TRUNCATE: {"int", "long", "small", "large", "string", "binary"},
        Transform.YEAR: dated,
        Transform.MONTH: dated,
        Transform.DAY: dated,
        Transform.HOUR: {"ts", "tstz"},
        Transform.MINUTE: set(),
    }


@pytest.mark.parametrize("field", ACCEPTED, ids=str)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_values_are_those_of_pyicebergs_own_function(field: PartitionField, data: st.DataObject) -> None:
    kind, values = _COLUMNS[field.column]
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=8))
    schema = to_iceberg(pa.schema([(field.column, kind)]))
    spec = to_spec((field,), schema)
    table = pa.table({field.column: pa.array(rows, kind)})
    plan = PartitionPlan(((field.name, field),))
    (keys,) = plan.keys(table)
    result_type = spec.partition_type(schema).fields[0].field_type
    ours = [from_json(plan.to_json([key]), [result_type])[0] for key in keys.to_pylist()]
    source = schema.fields[0].field_type
    reference = spec.fields[0].transform.transform(source)
    assert ours == [None if row is None else reference(_internal(row)) for row in rows]


def _internal(value: Any) -> Any:
    from pyiceberg.utils import datetime as pdt

    match value:
        case dt.datetime():
            return pdt.datetime_to_micros(value.replace(tzinfo=None))
        case dt.date():
            return pdt.date_to_days(value)
        case dt.time():
            return pdt.time_to_micros(value)
        case Decimal():
            return value
    return value


def _partitions(table: Any) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for task in table.scan().plan_files():
        key = tuple(task.file.partition[i] for i in range(len(task.file.partition)))
        found[key] = found.get(key, 0) + task.file.record_count
    return found


def test_an_append_of_pyiceberg_makes_the_same_partitions(make: Any) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.decimal128(7, 2))]
    )
    spec = (
        PartitionField("region"),
        PartitionField("ts", Transform.MONTH),
        PartitionField("id", Transform.BUCKET, 3),
        PartitionField("n", Transform.TRUNCATE, 50),
    )
    rows = pa.RecordBatch.from_pydict(
        {
            "id": [*range(29), None],
            "region": ["eu", "a/b=c %", "", None, "ü"] * 6,
            "ts": [dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC), None, dt.datetime(2026, 2, 3, tzinfo=dt.UTC)] * 10,
            "n": [Decimal("1.25"), Decimal("-1.25"), None] * 10,
        },
        schema=schema,
    )
    ours, theirs = make(schema, spec, name="ours"), make(schema, spec, name="theirs")
    result = ours.round(ours.token(0), rows)
    theirs.table().append(pa.Table.from_batches([rows], schema=to_arrow(theirs.table().schema())))
    assert _partitions(ours.table()) == _partitions(theirs.table())
    assert result.rows == 30
    assert ours.table().scan(row_filter="region = 'a/b=c %'").to_arrow().num_rows == 6
    assert ours.table().scan(row_filter="region is null").to_arrow().num_rows == 6


def test_buckets_are_a_partition_of_icebergs_own_function(make: Any) -> None:
    table = make(buckets=BucketSpec(4, ("id",), "iceberg"))
    assert table.info.descriptor.buckets == BucketSpec(4, ("id",), "iceberg")
    assert table.info.descriptor.partition_by == ()
    staged = table.stage(table.batch(0, 40))
    assert {file.bucket for file in staged.files} == {0, 1, 2, 3}
    table.committer().publish(state := table.committer().open(), [staged], table.watermark(0))
    assert state.snapshot_id is None
    from laketier.bucketing import assigner_for
    from laketier.spi import ScanRequest

    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest())
    assigner = assigner_for(table.info.descriptor)
    for split in plan.splits:
        for batch in source.read(split, plan.schema):
            assert set(assigner.assign(batch).to_pylist()) == {split.bucket}


@pytest.mark.parametrize(
    ("buckets", "match"),
    [
        (BucketSpec(4, ("id",)), "iceberg:bucket"),
        (BucketSpec(4, ("id", "s"), "iceberg"), "one column"),
    ],
)
def test_buckets_that_iceberg_does_not_have_are_refused(make: Any, buckets: BucketSpec, match: str) -> None:
    with pytest.raises(FeatureNotSupported, match=match):
        make(buckets=buckets)


@pytest.mark.parametrize(
    ("partition_by", "error"),
    [
        ((PartitionField("id", Transform.DAY),), UnsupportedType),
        ((PartitionField("id"), PartitionField("id")), ConfigError),
        ((PartitionField("id", Transform.BUCKET, 2), PartitionField("id", Transform.BUCKET, 4)), ConfigError),
    ],
)
def test_odd_partitionings_are_refused(make: Any, partition_by: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(partition_by=partition_by)


def test_a_number_with_a_point_is_no_partition(make: Any) -> None:
    with pytest.raises(UnsupportedType, match="identity does not take column 'x'"):
        make(pa.schema([("x", pa.float64())]), (PartitionField("x"),))


@pytest.mark.parametrize("op", [Op.LT, Op.LE, Op.GT, Op.GE])
def test_a_partition_that_is_null_where_another_side_of_an_or_keeps_it(make: Any, op: Op) -> None:
    """pyiceberg compares the null. The other filters still skip files."""
    table = make(partition_by=(PartitionField("s"),))
    rows = pa.RecordBatch.from_pydict({"id": [0, 1, 2], "s": [None, "a", "b"]}, schema=table.info.schema)
    table.round(None, rows)
    either = Or((Leaf("id", Op.EQ, 0), Leaf("s", op, "a")))
    plan = table.storage.source(table.info).plan(ScanRequest(filters=(And((either, Leaf("id", Op.LE, 1))),)))
    assert sum(split.rows or 0 for split in plan.splits) == 2, "the file of id 2 is skipped"
    assert plan.remaining == (And((either, Leaf("id", Op.LE, 1))),), "the reader applies what failed in pyiceberg"
    assert sorted(table.read(filters=(either,))["id"].to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize("open_end", [Leaf("t", Op.LE, dt.datetime.max), Leaf("t", Op.GE, dt.datetime.min)], ids=str)
def test_the_first_and_the_last_moment_of_python_stand_for_no_bound(make: Any, open_end: Leaf) -> None:
    """pyiceberg looks for the partition of the moment beyond."""
    schema = pa.schema([("t", pa.timestamp("us"))])
    table = make(schema, (PartitionField("t", Transform.MONTH),))
    table.round(None, pa.RecordBatch.from_pydict({"t": [dt.datetime(2024, 1, 1)]}, schema=schema))
    assert table.read(filters=(open_end,)).num_rows == 1


def test_a_partition_field_may_not_take_a_columns_name(make: Any) -> None:
    schema = pa.schema([("ts", pa.date32()), ("ts_day", pa.int32())])
    with pytest.raises(ConfigError, match="name of a column"):
        make(schema, (PartitionField("ts", Transform.DAY),))


def test_altering_keeps_the_partitioning(make: Any) -> None:
    table = make(partition_by=(PartitionField("s"),))
    info = table.storage.catalog().alter_table(table.info.path, [AddColumn(pa.field("new", pa.int32()))])
    assert info.descriptor.partition_by == (PartitionField("s"),)
    assert info.spec_id == table.info.spec_id


@given(values=st.lists(st.none() | st.text(max_size=3), min_size=1, max_size=20))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_may_be_a_partition(make: Any, values: list[str | None]) -> None:
    from laketier.spi import new_attempt_id

    table = make(pa.schema([("s", pa.string())]), (PartitionField("s"),), name=f"t{new_attempt_id()}")
    table.round(table.token(0), pa.RecordBatch.from_pydict({"s": pa.array(values, pa.string())}))
    found = table.read()["s"].to_pylist()
    assert sorted(found, key=str) == sorted(values, key=str)
    assert {key[0] for key in _partitions(table.table())} == set(values)


def test_moments_beyond_the_years_of_pyiceberg_core() -> None:
    """It has null for years beyond 262143, so filters skipped the file; its hours wrap around."""
    moments = pa.table(
        {"ts": pa.array([-9_200 * 10**15, 0, 9_200 * 10**15, None], pa.int64()).cast(pa.timestamp("us"))}
    )

    def keys(unit: Transform, rows: pa.Table = moments) -> list[Any]:
        return PartitionPlan((("ts", PartitionField("ts", unit)),)).keys(rows)[0].to_pylist()

    assert keys(Transform.YEAR) == [-291_537, 0, 291_536, None]
    assert keys(Transform.MONTH)[::2] == [-3_498_437, 3_498_436]
    with pytest.raises(IncompatibleData, match=r"partition value of hour\(ts\).*years 1 to 9999"):
        keys(Transform.HOUR)
    assert keys(Transform.HOUR, moments.slice(1, 1)) == [0]
    for micros, fits in (
        (-62_135_596_801_000_000, False),
        (253_402_300_799_999_999, True),
        (253_402_300_800_000_000, False),
    ):
        with contextlib.nullcontext() if fits else pytest.raises(IncompatibleData):
            keys(Transform.HOUR, pa.table({"ts": pa.array([micros]).cast(pa.timestamp("us"))}))
