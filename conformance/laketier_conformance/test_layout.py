"""Partitions, transforms and buckets: the rows are the same, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from laketier.bucketing import assigner_for
from laketier.kit.partition import partition_text
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    BucketSpec,
    ConfigError,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    Leaf,
    Op,
    PartitionField,
    ScanRequest,
    TableDescriptor,
    TablePath,
    Transform,
    UnsupportedType,
)
from laketier_conformance.expect import expect, goes_well, told
from laketier_conformance.lake import Lake, Table, read_split, token
from laketier_conformance.layouts import DAY, FUNCTIONS, KEYS, REFUSABLE, SPELLED, rows_by, spelled_as_they_are
from laketier_conformance.oracle import compare


def _written(lake: Lake, rows: pa.RecordBatch, **descriptor: Any) -> Table:
    table = lake.create(rows.schema, "db.laid_out", **descriptor)
    half = rows.num_rows // 2
    table.publish_arrow([rows.slice(0, half)], token(0))
    table.publish_arrow([rows.slice(half)], token(1))
    expect(table.read().sort_by("id"), pa.Table.from_batches([rows]), "rows that were written in two rounds")
    return table


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.PARTITIONING)
@pytest.mark.parametrize("name", KEYS)
def test_partitions(lake: Lake, name: str) -> None:
    rows = rows_by(*KEYS[name])
    try:
        table = _written(lake, rows, partition_by=(PartitionField("key"),))
    except UnsupportedType:
        if name not in REFUSABLE:
            raise
        expect(lake.storage.catalog().list_tables(), [], "the tables of the warehouse after a partitioning was refused")
        return
    expect(
        [field.column for field in table.info.descriptor.partition_by],
        ["key"],
        "the columns that a table is partitioned by",
    )
    if name in SPELLED:
        source = table.source
        spelled_as_they_are(source, source.plan(ScanRequest(columns=("key",))))
    expect(
        {dict(file.partition).get("key", "no key") for file in table.stage_arrow([rows]).files},
        {partition_text(key) for key in KEYS[name][1]},
        "the partitions that a result names, in canonical text",
    )
    for value in {v for v in KEYS[name][1] if v is not None}:
        expected = [i for i, key in enumerate(KEYS[name][1]) if key == value]
        found = table.read(filters=(Leaf("key", Op.EQ, value),), columns=("id", "key"))
        expect(sorted(found["id"].to_pylist()), expected, f"rows of the partition {value!r}")
    nulls = table.read(filters=(Leaf("key", Op.IS_NULL),), columns=("id", "key"))
    expect(
        sorted(nulls["id"].to_pylist()),
        [i for i, key in enumerate(KEYS[name][1]) if key is None],
        "rows of the partition of nulls",
    )


@pytest.mark.needs(Feature.PARTITIONING)
@pytest.mark.parametrize(
    "value", ["", "__HIVE_DEFAULT_PARTITION__", "null", " "], ids=["empty", "hive", "null", "blank"]
)
def test_text_that_looks_like_null(lake: Lake, value: str) -> None:
    """It comes back as it was, or is refused: never as null."""
    rows = rows_by(pa.string(), [value, None, "a"])
    table = lake.create(rows.schema, "db.laid_out", partition_by=(PartitionField("key"),))
    try:
        table.publish_arrow([rows], token(0))
    except IncompatibleData:
        expect(table.read().num_rows, 0, "the number of rows after an epoch was refused")
        rows = rows.slice(1)
        table.publish_arrow([rows], token(0))
    expect(table.read().sort_by("id"), pa.Table.from_batches([rows]), "rows of a partition whose name looks like null")


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions_of_two_columns(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("key", pa.string()), ("n", pa.int32())])
    keys, numbers = ["a", "b", None, "a"] * 5, [1, 2, None, None, 1] * 4
    rows = pa.record_batch([pa.array(range(20)), pa.array(keys), pa.array(numbers, pa.int32())], schema=schema)
    table = _written(lake, rows, partition_by=(PartitionField("key"), PartitionField("n")))
    again = lake.create(schema, "db.laid_out", partition_by=(PartitionField("key"), PartitionField("n")))
    expect(again.info.table_uuid, table.info.table_uuid, "the uuid of a partitioned table that is created again")


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions_of_rows_that_come_without_them(lake: Lake) -> None:
    """A batch lacks the column that the table is partitioned by: its rows have null there, whatever the batch before
    had."""
    whole = rows_by(pa.string(), ["a", None, "b", None])
    table = lake.create(whole.schema, "db.lacking", partition_by=(PartitionField("key"),))
    batches = [whole.slice(number, 1) for number in range(4)]
    lacking = [batch if number % 2 == 0 else batch.drop_columns(["key"]) for number, batch in enumerate(batches)]
    with goes_well("batches are published of which some lack the column that the table is partitioned by"):
        table.publish_arrow(lacking, token(0))
    everything = pa.Table.from_batches([whole])
    expect(table.read().sort_by("id"), everything, "rows that came without the column of their partition")
    compare(table, everything, [Leaf("key", Op.IS_NULL), Leaf("key", Op.EQ, "a"), Leaf("key", Op.NE, "a")])


@pytest.mark.needs(Feature.PARTITIONING)
def test_a_layout_by_odd_columns(lake: Lake) -> None:
    """By one that is named twice, by all that there are, so that files have no column of their own, and by a transform
    whose name another column has. It is refused, or the rows are there all the same, for filters too."""
    rows = rows_by(pa.string(), ["a", "b", None, "a"])
    once = PartitionField("key")
    lake.create(rows.schema, "db.once", partition_by=(once,))  # a format without them refuses here
    layouts: dict[str, tuple[pa.RecordBatch, tuple[PartitionField, ...]]] = {
        "twice": (rows, (once, once)),
        "all": (rows, tuple(map(PartitionField, rows.schema.names))),
    }
    if lake.declares(Feature.PARTITION_TRANSFORMS):
        more = rows.append_column("key_trunc", pa.array(["b", "a", "a", None]))
        layouts["named"] = (more, (PartitionField("key", Transform.TRUNCATE, 1),))
    for name, (rows, layout) in layouts.items():
        try:
            table = lake.create(rows.schema, f"db.{name}", partition_by=layout)
        except LaketierError:
            there = lake.storage.catalog().list_tables()
            expect(TablePath("db", name) in there, False, f"whether a table is there whose layout {layout} was refused")
            continue
        table.publish_arrow([rows], token(0))
        expect(table.read().sort_by("id"), pa.Table.from_batches([rows]), f"rows of a table with the layout {layout}")
        texts = [column for column in rows.schema.names if column.startswith("key")]
        filters = [Leaf(column, Op.EQ, value) for column in texts for value in "abc"]
        filters += [*(Leaf(column, Op.IS_NULL) for column in texts), Leaf("id", Op.GE, 2)]
        compare(table, pa.Table.from_batches([rows]), filters)


@pytest.mark.needs(Feature.PARTITIONING)
def test_results_name_their_partitions(lake: Lake) -> None:
    rows = rows_by(*KEYS["string"])
    table = lake.create(rows.schema, "db.laid_out", partition_by=(PartitionField("key"),))
    result = table.stage_arrow([rows])
    named = {dict(file.partition).get("key", "no key") for file in result.files}
    expect(named, set(KEYS["string"][1]), "the partitions that a result names")
    expect(result.rows, rows.num_rows, "the number of rows in a result")


@pytest.mark.needs(Feature.PARTITIONING)
def test_files_of_partitions_are_known_by_their_paths(lake: Lake) -> None:
    """A folder that has the name of a value may be spelled in two ways, and a path is more than a name. What is
    published stays, and once: after a discard, after its result was handed over again, and after a collection."""
    rows = rows_by(pa.string(), ["a", "%20 ä/", None, "a"])
    table = lake.create(rows.schema, "db.laid_out", partition_by=(PartitionField("key"),))
    published, nobodys = table.stage_arrow([rows]), table.stage_arrow([rows])

    def stays(doing: str) -> None:
        with goes_well(doing):
            found = table.read().sort_by("id")
        expect(found, pa.Table.from_batches([rows]), doing)

    table.commit([published], token(0))
    committer = table.committer()
    committer.discard([published])
    committer.close()
    stays("rows of partitions, whose result was discarded after it had been published")
    with suppress(LaketierError):
        table.commit([published], None)
    stays("rows of partitions, whose result was handed over again, as a batch")
    if not lake.declares(Feature.ORPHAN_COLLECTION):
        return
    lake.let_age()
    removed = {file.path for file in collect_orphans(lake.storage, table.info, grace=timedelta(0)).removed}
    stays("rows of partitions, after orphans were collected")
    left = {file.path for file in nobodys.files} - removed
    expect(sorted(left), [], "files of partitions that nobody published, and no collection removed")


TRANSFORMS = {
    "bucket-int": PartitionField("id", Transform.BUCKET, 4),
    "bucket-string": PartitionField("key", Transform.BUCKET, 3),
    "truncate-string": PartitionField("key", Transform.TRUNCATE, 1),
    "truncate-int": PartitionField("id", Transform.TRUNCATE, 10),
}


@pytest.mark.needs(Feature.PARTITIONING, Feature.PARTITION_TRANSFORMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(lake: Lake, name: str) -> None:
    table = _written(lake, rows_by(*KEYS["string"]), partition_by=(TRANSFORMS[name],))
    expect(table.info.descriptor.partition_by, (TRANSFORMS[name],), "the partitioning of the table")


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.PARTITIONING, Feature.PARTITION_TRANSFORMS)
@pytest.mark.parametrize("unit", [Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR])
def test_transforms_of_time(lake: Lake, unit: Transform) -> None:
    """Also before 1970, where a careless division rounds towards zero."""
    values = [DAY, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(1968, 2, 29), None]
    table = _written(lake, rows_by(pa.timestamp("us"), values), partition_by=(PartitionField("key", unit),))
    for value in values[:-1]:
        found = table.read(filters=(Leaf("key", Op.EQ, value),), columns=("id", "key"))
        expect(found["key"].to_pylist(), [value], f"rows of the moment {value}, by a transform of time")
    if unit is Transform.HOUR:
        _hours_of_days(lake)


def _hours_of_days(lake: Lake) -> None:
    """A day has no hours: who takes it for a number of them puts it into a day of 1972."""
    rows, field = rows_by(pa.date32(), [DAY.date()]), PartitionField("key", Transform.HOUR)
    try:
        table = lake.create(rows.schema, "db.hours_of_days", partition_by=(field,))
    except (ConfigError, FeatureNotSupported, IncompatibleTable, UnsupportedType):
        return
    with goes_well("a row is written to a table that is partitioned by the hours of a date, which was not refused"):
        table.publish_arrow([rows], token(0))
    for split in table.source.plan(ScanRequest()).splits:
        for name, text in split.partition:
            assert (text or "").startswith(str(DAY.date())), (
                f"a row of a table that is partitioned by the hours of a date, which was not refused: expected {name} "
                f"of {DAY.date()} to be one of that day, found {text!r}"
            )


_MOMENTS = [
    DAY,
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1969, 12, 31, 23),
    datetime(1970, 1, 1),
    datetime(1970, 1, 1, 0, 59, 59, 999999),
    datetime(1970, 1, 2, 1),
    datetime(1968, 2, 29),
    None,
]
_TEXTS = ["é1", "ö2", "é3", "e\u0301", "z", "\U0001f986", "\U0001f980", None]
HIDDEN: dict[str, tuple[PartitionField, pa.DataType, list[Any], Callable[[Any], Any]]] = {
    "year": (PartitionField("key", Transform.YEAR), pa.timestamp("us"), _MOMENTS, lambda t: t.year),
    "month": (PartitionField("key", Transform.MONTH), pa.timestamp("us"), _MOMENTS, lambda t: (t.year, t.month)),
    "day": (PartitionField("key", Transform.DAY), pa.timestamp("us"), _MOMENTS, lambda t: t.date()),
    "hour": (PartitionField("key", Transform.HOUR), pa.timestamp("us"), _MOMENTS, lambda t: (t.date(), t.hour)),
    "truncate-text": (PartitionField("key", Transform.TRUNCATE, 1), pa.string(), _TEXTS, lambda text: text[:1]),
    "truncate-number": (
        PartitionField("key", Transform.TRUNCATE, 10),
        pa.int64(),
        [-11, -10, -9, -1, 0, 9, 10, None],
        lambda number: number // 10,
    ),
}


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.PARTITIONING, Feature.PARTITION_TRANSFORMS)
@pytest.mark.parametrize("name", HIDDEN)
def test_a_split_has_one_value_of_a_transform(lake: Lake, name: str) -> None:
    """Whoever skips splits by the partition that they tell would lose the rows of another one."""
    field, kind, values, transformed = HIDDEN[name]
    rows = rows_by(kind, values)
    table = lake.create(rows.schema, "db.laid_out", partition_by=(field,))
    table.publish_arrow([rows], token(0))
    source = table.source
    plan = source.plan(ScanRequest(columns=("key",)))
    told: dict[Any, set[str | None]] = {}
    for split in plan.splits:
        if field.name not in dict(split.partition):
            continue
        keys = [key for part in read_split(source, split, plan.schema) for key in part["key"].to_pylist()]
        lies_in = {None if key is None else transformed(key) for key in keys}
        text = dict(split.partition)[field.name]
        assert len(lies_in) == 1, f"{keys} lie in one split, whose {field} is told as {text!r}: expected one value"
        told.setdefault(lies_in.pop(), set()).add(text)
    for value, texts in told.items():
        expect(len(texts), 1, f"the number of spellings {sorted(map(str, texts))} of the {field} of {value}")
    spelled = [text for texts in told.values() for text in texts]
    expect(len(set(spelled)), len(spelled), f"the number of partitions of {field}, which are spelled {spelled}")


@pytest.mark.needs(Feature.BUCKETING)
def test_buckets(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """Each split holds the rows of one bucket, the very one that the source would give them. A format may know some of
    the bucket functions only; one at least."""
    rows = rows_by(pa.string(), [f"key {i}" for i in range(40)])
    refusals = []
    known = []
    for function in FUNCTIONS:
        try:
            table = _bucketed(lake, rows, BucketSpec(4, ("key",), function))
        except FeatureNotSupported as refusal:
            refusals.append(refusal)
            continue
        known.append(function)
        expect(table.info.descriptor.buckets, BucketSpec(4, ("key",), function), "the buckets of the table")
    if not known:
        raise refusals[0]
    if lake.declares(Feature.PARTITIONING):
        spec, part = BucketSpec(3, ("key",), known[0]), pa.array([7 + i % 2 for i in range(40)])
        try:
            _bucketed(lake, rows.append_column("part", part), spec, name="both", partition_by=(PartitionField("part"),))
        except (FeatureNotSupported, IncompatibleTable) as refusal:  # a format may have one of the two in a table
            unproven("partitions and buckets in one table", told(refusal))


BUCKET_KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-128, -2, -1, 0, 1, 127]),
    "int": (pa.int32(), [-(2**31), -70_000, -129, -2, -1, 0, 1, 128, 70_000, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), -(2**31) - 1, -129, -2, -1, 0, 1, 128, 2**31, 2**63 - 1]),
    "text": (pa.string(), ["", " ", "a", "é", "e\u0301", "\uffff", "\U0001f986", "x" * 300]),
    "decimal": (pa.decimal128(9, 2), [Decimal(text) for text in ("-1234567.89", "-0.01", "0.00", "1.50", "1.05")]),
    "wide-decimal": (pa.decimal128(38, 10), [Decimal(text) for text in ("-1E+27", "-1E-10", "0", "1E-10", "12")]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2026, 11, 21)]),
    "timestamp": (pa.timestamp("us"), [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), DAY]),
}


@pytest.mark.needs(Feature.BUCKETING)
@pytest.mark.parametrize("name", BUCKET_KEYS)
def test_buckets_of_each_type(lake: Lake, name: str, unproven: Callable[[str, str], None]) -> None:
    """A key is hashed as the type that it has: -1 as a whole number of four bytes is another key than one of eight."""
    rows = rows_by(*BUCKET_KEYS[name])
    refusals: list[FeatureNotSupported] = []
    of_type: list[UnsupportedType | ConfigError] = []
    for function in FUNCTIONS:
        try:
            _bucketed(lake, rows, BucketSpec(4, ("key",), function), whole=False)
        except FeatureNotSupported as refusal:
            refusals.append(refusal)
        except (UnsupportedType, ConfigError) as error:
            of_type.append(error)  # a function hashes some types, and a format takes some
    if len(refusals) == len(FUNCTIONS) or (refusals and not lake.declares(Feature.BUCKETING)):
        raise refusals[0]
    if len(refusals) + len(of_type) == len(FUNCTIONS):
        unproven(
            f"buckets of {name}", f"no function takes a key of {rows.schema.field('key').type}: {told(of_type[0])}"
        )


NARROWER: dict[str, tuple[str, pa.DataType]] = {
    "int-for-bigint": ("int", pa.int64()),
    "codes-for-text": ("text", pa.string()),
}


@pytest.mark.needs(Feature.BUCKETING)
@pytest.mark.parametrize("name", NARROWER)
def test_buckets_of_rows_that_come_in_another_type(lake: Lake, name: str) -> None:
    """A task takes narrower numbers, and texts by a dictionary. The bucket is that of what the table has of them."""
    of_type, kind = NARROWER[name]
    narrow, values = BUCKET_KEYS[of_type]
    rows = rows_by(kind, values)
    given = pa.dictionary(pa.int32(), kind) if of_type == "text" else narrow
    batch = rows.set_column(1, "key", rows["key"].cast(given))
    refusals: list[FeatureNotSupported] = []
    for function in FUNCTIONS:
        try:
            _bucketed(lake, rows, BucketSpec(4, ("key",), function), whole=False, given=batch)
        except FeatureNotSupported as refusal:
            refusals.append(refusal)
        except (UnsupportedType, ConfigError):
            continue
    if len(refusals) == len(FUNCTIONS):
        raise refusals[0]


@pytest.mark.needs(Feature.BUCKETING)
@pytest.mark.parametrize("what", ["two-keys", "nulls"])
def test_buckets_by_keys_that_are_two_or_null(lake: Lake, what: str) -> None:
    """Keys are hashed in the order in which a table names them, which is not that of its columns. Some functions take
    one key alone, and some have no bucket for nulls."""
    two = what == "two-keys"
    rows = rows_by(pa.string(), [f"key {i}" if two or i % 2 else None for i in range(20)])
    refusals: list[FeatureNotSupported] = []
    for function in FUNCTIONS:
        try:
            _bucketed(lake, rows, BucketSpec(4, ("key", "id") if two else ("key",), function), whole=False)
        except FeatureNotSupported as refusal:
            refusals.append(refusal)
        except (UnsupportedType, ConfigError, IncompatibleData):
            continue
    if refusals and not lake.declares(Feature.BUCKETING):
        raise refusals[0]


def _bucketed(
    lake: Lake,
    rows: pa.RecordBatch,
    buckets: BucketSpec,
    *,
    whole: bool = True,
    name: str = "",
    given: pa.RecordBatch | None = None,
    **more: Any,
) -> Table:
    table = lake.create(rows.schema, f"db.{name or buckets.function}", buckets=buckets, **more)
    staged = table.stage_arrow([rows if given is None else given])
    table.commit([staged], token(0))
    expect(table.read().sort_by("id"), pa.Table.from_batches([rows]), "rows of a table with buckets")
    assigner = assigner_for(TableDescriptor(rows.schema, buckets=buckets))
    source = table.source
    plan = source.plan(ScanRequest())
    found = set()
    for split in plan.splits:
        for part in read_split(source, split, plan.schema):
            expect(set(assigner.assign(part).to_pylist()), {split.bucket}, "the buckets that rows of a split belong to")
            found.add(split.bucket)
    if whole:
        expect(found, {*range(buckets.count)}, "the buckets that have rows")
    told_of = {file.bucket for file in staged.files}
    expect(told_of, set(assigner.assign(rows).to_pylist()), "the buckets that a task tells of its files")
    return table
