"""Filters on partitions: each value that text, folders and logs spell badly is found again, and no other beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.bucketing import assigner_for
from laketier.kit.partition import partition_text
from laketier.spi import (
    And,
    BucketSpec,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    Leaf,
    Not,
    Op,
    Or,
    PartitionField,
    Predicate,
    ScanRequest,
    Transform,
    UnsupportedType,
    WriteResult,
)
from laketier_conformance.expect import expect, told
from laketier_conformance.lake import Lake, Table, read_split, token
from laketier_conformance.oracle import compare

pytestmark = pytest.mark.needs(Feature.PARTITIONING)

# Neighbours become one where a format folds, trims, escapes twice or not at all, normalises, or guesses a type.
TEXT = [
    "A", "a", "a ", " a", "", " ", "a=b", "a/b", "a%2Fb", "a%252Fb", "%", "a b", "a+b", "a%20b", "..", "key=a", "é",
    "e\u0301", "\U0001f986", "\uffff", "null", "None", "true", "1", "01", "1.0", "*", "#", "a:b", "'", '"', "\\",
    "a\nb", "__HIVE_DEFAULT_PARTITION__", "x" * 120 + "1", "x" * 120 + "2", "x" * 300 + "1", "x" * 300 + "2",
]  # fmt: skip
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXT),
    "int": (pa.int64(), [-(2**63), -1, 0, 1, 10, 9, 2**53 + 1, 2**63 - 1]),
    "bool": (pa.bool_(), [False, True]),
    "date": (
        pa.date32(),
        [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    ),
    "timestamp": (
        pa.timestamp("us"),
        [
            datetime(1, 1, 1),
            datetime(1969, 12, 31, 23, 59, 59),
            datetime(1969, 12, 31, 23, 59, 59, 500000),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(1970, 1, 1),
            datetime(2026, 11, 21, 8, 30, 0, 1),
        ],
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [
            datetime(1900, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
            datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
            datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
            datetime(9999, 12, 31, 8, 30, 15, 123459, tzinfo=UTC),  # as seconds, no float has it
        ],
    ),
    "decimal": (pa.decimal128(9, 2), [Decimal(text) for text in ("-10.00", "-9.99", "0.00", "0.10", "1.00", "9.00")]),
    "binary": (pa.binary(), [b"", b"\x00", b"a", b"/", b"\xff"]),
    "float": (pa.float64(), [float("-inf"), -1.5, -0.0, 0.0, 0.1, 1e300, float("nan")]),
}


SPELLED = ("text", "int", "date")
"""Types whose values all formats spell alike, as `LakeSplit.partition` says."""


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize("name", VALUES)
def test_filters_on_partitions(lake: Lake, name: str) -> None:
    """A type may be refused when the table is made, a value when it is staged; what is taken is found."""
    kind, values = VALUES[name]
    schema = pa.schema([("id", pa.int64()), ("key", kind)])
    try:
        table = lake.create(schema, "db.parts", partition_by=(PartitionField("key"),))
    except UnsupportedType:
        return
    kept = _published(table, schema, [(value,) for value in [*values, None]])
    if name in SPELLED:
        _told_as_spelled(table)
    compare(table, kept, _predicates("key", [row["key"] for row in kept.to_pylist() if row["key"] is not None]))
    if name == "instant":
        _an_hour_that_comes_twice(lake)
    if lake.declares(Feature.ORPHAN_COLLECTION):
        found = list(lake.storage.maintenance(table.info).findings())
        expect(found, [], f"the findings of a table with partitions of {kind}, which laketier alone wrote")


def _an_hour_that_comes_twice(lake: Lake) -> None:
    """Where the clock of a zone is put back, it shows two moments alike. To Python they are the same, also as keys of a
    dictionary, so one task that keeps its partitions by them puts both into one."""
    moments = [datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6, 7)]
    schema = pa.schema([("id", pa.int64()), ("key", pa.timestamp("us", "America/New_York"))])
    try:
        table = lake.create(schema, "db.zoned", partition_by=(PartitionField("key"),))
    except UnsupportedType:
        return
    rows = pa.record_batch([pa.array([0, 1, 2]), pa.array(moments, schema.field("key").type)], schema=schema)
    table.publish_arrow([rows], token(0))
    compare(table, pa.Table.from_batches([rows]), [Leaf("key", Op.EQ, moment) for moment in moments])


def _told_as_spelled(table: Table) -> None:
    """An upsert skips the splits of other partitions by this text: spelled otherwise, a key would be there twice."""
    source = table.source
    plan = source.plan(ScanRequest(columns=("key",)))
    for split in plan.splits:
        if "key" not in dict(split.partition):
            continue
        keys = [key for part in read_split(source, split, plan.schema) for key in part["key"].to_pylist()]
        spelled = {partition_text(key) for key in keys}
        expect({dict(split.partition)["key"]}, spelled, f"the partition that a split tells, whose rows have {keys[:2]}")


_DAY = datetime(2026, 11, 21)
_MOMENTS = [
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    *(_DAY.replace(hour=hour, minute=minute) for hour in (0, 8) for minute in (0, 30)),
    _DAY.replace(day=22),
    _DAY.replace(month=12, day=1),
    datetime(2027, 1, 1),
]
HIDDEN: dict[str, tuple[PartitionField, pa.DataType, list[Any], list[Any]]] = {
    **{
        unit.value: (PartitionField("key", unit), pa.timestamp("us"), _MOMENTS, [_DAY.replace(hour=8, minute=15)])
        for unit in (Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR)
    },
    "day-of-instant": (
        PartitionField("key", Transform.DAY),
        pa.timestamp("us", "UTC"),
        [moment.replace(tzinfo=UTC) for moment in _MOMENTS],
        [_DAY.replace(hour=8, minute=15, tzinfo=UTC)],
    ),
    "month-of-date": (
        PartitionField("key", Transform.MONTH),
        pa.date32(),
        [moment.date() for moment in _MOMENTS],
        [date(2026, 11, 30)],
    ),
    "truncate-text": (
        PartitionField("key", Transform.TRUNCATE, 3),
        pa.string(),
        ["", "a", "abb", "abc", "abcd", "abd", "é\U0001f986zz", "é\U0001f986zy"],
        ["ab", "abca", "abce", "b"],
    ),
    "truncate-number": (
        PartitionField("key", Transform.TRUNCATE, 10),
        pa.int64(),
        [-(2**63) + 10, -11, -10, -9, -1, 0, 9, 10, 2**53 + 1, 2**63 - 1],
        [-5, 5, 11],
    ),
    "bucket-text": (PartitionField("key", Transform.BUCKET, 4), pa.string(), ["", "a", "b", "c", "d", "e"], ["f"]),
    "bucket-number": (
        PartitionField("key", Transform.BUCKET, 4),
        pa.int32(),
        [-(2**31), -1, 0, 1, 2, 3, 5, 2**31 - 1],
        [4],
    ),
}


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.PARTITION_TRANSFORMS)
@pytest.mark.parametrize("name", HIDDEN)
def test_filters_on_hidden_partitions(lake: Lake, name: str) -> None:
    """A filter is of the column, and a partition has many of its values: the one in which a bound lies has rows on both
    sides of it, and a bucket tells only what is not in it."""
    field, kind, values, between = HIDDEN[name]
    schema = pa.schema([("id", pa.int64()), ("key", kind)])
    try:
        table = lake.create(schema, "db.hidden", partition_by=(field,))
    except UnsupportedType:
        return
    kept = _published(table, schema, [(value,) for value in [*values, None]])
    compare(table, _again_by_one_task(table, kept), _each_operator("key", [*values, *between]))


BUCKETED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "a", "b", "c", "d", "e", "f"]),
    "int": (pa.int32(), [-(2**31), -70_000, -2, -1, 0, 1, 2, 3, 2**31 - 1]),
}


@pytest.mark.needs(Feature.BUCKETING)
@pytest.mark.parametrize("name", BUCKETED)
def test_filters_on_keys_of_buckets(lake: Lake, name: str) -> None:
    """A literal that is hashed as another type than the column's lies in another bucket."""
    kind, values = BUCKETED[name]
    schema = pa.schema([("id", pa.int64()), pa.field("key", kind, nullable=False)])
    refusal: Exception | None = None
    for function in ("fluss", "hudi", "paimon", "iceberg"):
        try:
            table = lake.create(schema, "db.bucketed", buckets=BucketSpec(16, ("key",), function))
        except (FeatureNotSupported, UnsupportedType) as error:
            refusal = refusal or error
            continue
        kept = _published(table, schema, [(value,) for value in values])
        source, assigner = table.source, assigner_for(table.info.descriptor)
        plan = source.plan(ScanRequest(columns=("key",)))
        for split in plan.splits:
            rows = read_split(source, split, plan.schema)
            buckets = {bucket for part in rows for bucket in assigner.assign(part).to_pylist()}
            found = buckets if split.bucket == -1 else {split.bucket}
            expect(found, buckets, "the bucket that a split tells, of 16")
        compare(table, _again_by_one_task(table, kept), _each_operator("key", values))
        return
    if isinstance(refusal, FeatureNotSupported):
        raise refusal


def _each_operator(column: str, literals: Sequence[Any]) -> Iterator[Predicate]:
    for literal in literals:
        for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE):
            yield Leaf(column, op, literal)
        yield Not(Leaf(column, Op.EQ, literal))
        if isinstance(literal, str):
            yield Leaf(column, Op.STARTS_WITH, literal)
    yield Leaf(column, Op.IN, (literals[0], literals[-1]))
    yield Not(Leaf(column, Op.IN, (literals[0], literals[-1])))
    yield And((Leaf(column, Op.GE, literals[1]), Leaf(column, Op.LT, literals[-1])))
    yield Leaf(column, Op.IS_NULL)
    yield Leaf(column, Op.NOT_NULL)


def test_values_of_one_task_stay_apart(lake: Lake) -> None:
    """However alike the folders are that they get: no file takes the place of another one of its task."""
    schema = pa.schema([("id", pa.int64()), ("key", pa.string())])
    table = lake.create(schema, "db.parts", partition_by=(PartitionField("key"),))
    taken: dict[int, str | None] = {}
    for number, value in enumerate([*TEXT, None]):
        try:
            table.stage_arrow([pa.record_batch([pa.array([number]), pa.array([value], pa.string())], schema=schema)])
        except IncompatibleData:
            continue
        taken[number] = value
    rows = pa.record_batch([pa.array(list(taken)), pa.array(list(taken.values()), pa.string())], schema=schema)
    doing = f"{len(taken)} values of a partition column, each of which is taken alone, are written by one task"
    try:
        table.publish_arrow([rows], token(0))
    except LaketierError as error:
        pytest.fail(f"{doing}: found {told(error)}")
    expect(dict(zip(*table.read().sort_by("id").to_pydict().values(), strict=True)), taken, f"rows when {doing}")
    _many_combinations(lake)


_KEYS = [f"k{number:02}" for number in range(33)]


def _many_combinations(lake: Lake) -> None:
    """Four values of each of 33 columns have 2**66 combinations. Who numbers those of a batch in 64 bits, or fewer,
    takes two for one whose first columns alone differ."""
    schema = pa.schema([("id", pa.int64()), *((key, pa.int64()) for key in _KEYS)])
    try:
        table = lake.create(schema, "db.combined", partition_by=tuple(map(PartitionField, _KEYS)))
    except (UnsupportedType, IncompatibleTable, FeatureNotSupported):
        return  # a table has fewer columns at most, or fewer of partitions
    keys = [[number] * len(_KEYS) for number in range(4)] + [[1, *[0] * (len(_KEYS) - 1)]]
    rows = pa.Table.from_pylist(
        [{"id": number, **dict(zip(_KEYS, values, strict=True))} for number, values in enumerate(keys)], schema
    )
    table.publish_arrow(rows.to_batches(), token(0))
    doing = f"one task writes {len(keys)} partitions of {len(_KEYS)} columns"
    expect(table.read().sort_by("id").to_pylist(), rows.to_pylist(), f"rows when {doing}")
    compare(table, rows, [Leaf(_KEYS[0], Op.EQ, 0), Leaf(_KEYS[0], Op.EQ, 1)])


def test_filters_on_several_partition_columns(lake: Lake) -> None:
    """One by one, together, and beside a column of the files."""
    schema = pa.schema([("id", pa.int64()), ("key", pa.string()), ("day", pa.date32()), ("n", pa.int32())])
    keys, days, numbers = ["a", "A", "a/b", None], [date(1969, 12, 31), date(2026, 1, 1), None], [-1, 1]
    every = [(key, day, number) for key in keys for day in days for number in numbers]
    by = tuple(PartitionField(name) for name in ("n", "key", "day"))
    table = lake.create(schema, "db.parts", partition_by=by)
    kept = _published(table, schema, every)
    a, early, below = Leaf("key", Op.EQ, "a"), Leaf("day", Op.LT, date(1970, 1, 1)), Leaf("n", Op.LT, 0)
    no_key, some = Leaf("key", Op.IS_NULL), Leaf("id", Op.GE, 10)
    mixed: list[Predicate] = [
        And((a, early)),
        Or((a, early)),
        Not(And((a, early))),
        Not(Or((no_key, below))),
        And((no_key, some)),
    ]
    mixed += [Or((some, early)), Not(Or((some, a))), And((Or((a, no_key)), below, Not(early)))]
    compare(table, kept, [a, early, below, no_key, *mixed])


@pytest.mark.parametrize(
    ("length", "value"), [(200, "x" * 100), (200, "x"), (260, "x")], ids=["both", "short-value", "too-long"]
)
def test_long_names_of_partition_columns(lake: Lake, length: int, value: str) -> None:
    """The name of a folder may hold both, and 255 bytes are the most. The column is refused when the table is made, or
    the value when it is staged; what is taken is found."""
    column = "k" * length
    schema = pa.schema([("id", pa.int64()), (column, pa.string())])
    rows = pa.record_batch([pa.array([1, 2, 3], pa.int64()), pa.array([value, value[:-1] + "y", None])], schema=schema)
    doing = f"a value of {len(value)} letters in a partition column whose name has {length}"
    try:
        table = lake.create(schema, "db.parts", partition_by=(PartitionField(column),))
        staged = table.stage_arrow([rows])
    except (UnsupportedType, IncompatibleData):
        return
    except FeatureNotSupported:
        raise  # of a format without partitions
    except LaketierError as error:
        pytest.fail(f"{doing} is taken, or UnsupportedType or IncompatibleData: found {told(error)}")
    table.commit([staged], token(0))
    compare(table, pa.Table.from_batches([rows]), [Leaf(column, Op.EQ, value), Leaf(column, Op.IS_NULL)])


def _published(table: Table, schema: pa.Schema, keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Two rows of each key, in one commit; keys that are refused when they are staged are left out. The rows that were
    taken, which the plain scan has to give."""
    results: list[WriteResult] = []
    taken = []
    for number, key in enumerate(keys):
        columns = [[2 * number, 2 * number + 1], *([part, part] for part in key)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        rows = pa.record_batch(arrays, schema=schema)
        try:
            results.append(table.stage_arrow([rows]))
        except IncompatibleData:
            continue
        taken.append(rows)
    assert len(taken) > len(keys) / 2, f"of the values {keys} most were refused; only a few can't be spelled"
    table.commit(results, token(0))
    expected, plain = pa.Table.from_batches(taken), table.read()
    lost, more = (Counter(map(repr, rows.to_pylist())) for rows in (expected, plain))
    assert lost == more, f"a plain scan has other rows than were written: it lacks {lost - more} and adds {more - lost}"
    return expected


def _again_by_one_task(table: Table, kept: pa.Table) -> pa.Table:
    """The rows of `_published`, and those of one more task with the same values. The bounds of a file of one value
    decide each filter, and those of a file of several values don't."""
    more = kept.set_column(0, kept.schema.field("id"), pc.add(kept["id"], 1000))
    table.publish_arrow(more.combine_chunks().to_batches(), token(1))
    return pa.concat_tables([kept, more])


def _predicates(column: str, values: Sequence[Any]) -> Iterator[Predicate]:
    literals = list(dict.fromkeys(values))
    for number, literal in enumerate(literals):
        yield Leaf(column, Op.EQ, literal)
        if number % 3 == 0 or len(literals) < 10:
            yield Leaf(column, (Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)[number % 5], literal)
        if isinstance(literal, str) and number % 4 == 0:
            yield Leaf(column, Op.STARTS_WITH, literal)
    yield Leaf(column, Op.IN, (literals[0], literals[-1]))
    yield Leaf(column, Op.IN, (literals[0], None))
    yield Not(Leaf(column, Op.IN, (literals[0], literals[-1])))
    yield Not(Leaf(column, Op.EQ, literals[0]))
    yield Leaf(column, Op.IS_NULL)
    yield Leaf(column, Op.NOT_NULL)
