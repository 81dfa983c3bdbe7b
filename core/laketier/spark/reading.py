"""Reading a table into Spark, by the cheapest way that its snapshot allows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from laketier.config import LakeConfig
from laketier.spark.arrow_batches import type_width
from laketier.spark.classic import context_of
from laketier.spark.schema import for_spark, reading_schema, spark_schema
from laketier.spark.target import as_config
from laketier.spi import And, LakeSplit, Leaf, Not, Op, Or, Predicate, ScanPlan
from laketier.spi.predicate import COMPARISONS, exact_comparison, exact_members
from laketier.spi.serializer import pack, unpack
from laketier.tables import Scan, group_splits, open_source, plan_scan, scan_request

_TASKS_PER_CORE = 4
_AS_IT_IS = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "ignoredPathSegmentRegex": "^[._]",  # Spark's own default
}
"""For Spark's own reader, whatever the session is set to for files of others: a snapshot has all rows or is an error,
and a day before 1582 is the day that was written. Before 4.3 Spark has no `ignoredPathSegmentRegex`, and passes over
it."""

_ZEROS_ARE_EQUAL = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
"""For files with floats. For Parquet's reader -0.0 and 0.0 are two values where it skips a group of rows by what its
dictionary or its Bloom filter tells: ``d = 0`` and ``d >= 0`` lost the rows of a group that has -0.0 alone. Bounds know
both zeros."""
_MOVES_INT96 = "spark.sql.parquet.int96TimestampConversion"


def read(
    spark: SparkSession,
    config: LakeConfig | Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
) -> DataFrame:
    """A DataFrame over one snapshot of a table, planned now. Driver.

    Where the snapshot is plain Parquet without deletes, Spark's own reader reads the files, with its pruning, pushdown
    and code generation. Elsewhere tasks read Arrow splits of just ``columns``; of a snapshot that is plain in part, the
    rest. Raises `TableNotFound`, `ConfigError`,
    `SnapshotNotFound` and `UnsupportedType`.
    """
    config = as_config(config, spark)
    filters = tuple(filters)
    source = open_source(config)
    planned = plan_scan(source, scan_request(config, columns, filters))
    plain, others = _parted(planned, moves_int96=_moves_int96(spark))
    if plain is not None and not others.plan.splits:
        df = _native(spark, plain, filters)
    elif plain is not None and planned.schema.names:
        names = planned.schema.names
        df = _native(spark, plain, filters).select(*map(_quoted, names)).unionAll(_splits(spark, others))
    else:
        if not planned.schema.names:
            # Arrow from Python to Spark loses the number of rows where there are no columns.
            every = source.plan(scan_request(config)).schema
            planned = plan_scan(source, scan_request(config, [_narrowest(every)], filters))
        df = _splits(spark, planned)
    return df if columns is None else df.select(*map(_quoted, columns))


def _narrowest(schema: pa.Schema) -> str:
    name: str = min(schema, key=lambda field: type_width(field.type)).name
    return name


def _moves_int96(spark: SparkSession) -> bool:
    """Spark tells a setting as it was spelled, and takes ``TRUE`` for true."""
    told = spark.conf.get(_MOVES_INT96) or ""
    return told.strip().lower() == "true"


def _parted(planned: Scan, *, moves_int96: bool) -> tuple[ScanPlan | None, Scan]:
    """The part of a plan whose rows Spark's own Parquet reader gives unchanged, and the rest. None for no such part,
    but for a plan without splits, which is one. ``moves_int96``: whether the session takes moments of INT96 for local
    ones, for which Spark's reader has no option of its own."""
    plan = planned.plan
    plain = tuple(split for split in plan.splits if _is_plain(split))
    if (plan.splits and not plain) or not all(_is_native_type(field.type) for field in plan.schema):
        return None, planned
    if moves_int96 and plan.splits and any(_has_moments(field.type) for field in plan.schema):
        return None, planned
    rest = tuple(split for split in plan.splits if not _is_plain(split))
    return replace(plan, splits=plain), replace(planned, plan=replace(plan, splits=rest))


def _is_plain(split: LakeSplit) -> bool:
    """Whether Spark's own reader may be given the split's file. It passes over files whose names are like those of
    metadata or of copies, without a word, also where it is given their very paths."""
    if split.plain_parquet is None:
        return False
    name = split.plain_parquet.rpartition("/")[2]
    return not name.startswith(("_", ".")) and not name.endswith("._COPYING_")


def _is_native_type(kind: pa.DataType) -> bool:
    """Types that Spark reads from Parquet as it reads them from Arrow. Nanoseconds, unsigned and time are not."""
    if pt.is_timestamp(kind):
        return kind.unit in ("us", "ms")
    if pt.is_nested(kind):
        return all(_is_native_type(kind.field(i).type) for i in range(kind.num_fields))
    return (
        pt.is_signed_integer(kind)
        or pt.is_float32(kind)
        or pt.is_float64(kind)
        or pt.is_decimal128(kind)
        or pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_boolean(kind)
        or pt.is_date32(kind)
    )


def _has_moments(kind: pa.DataType) -> bool:
    if pt.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_moments(kind.field(i).type) for i in range(kind.num_fields))


def _has_floats(kind: pa.DataType) -> bool:
    return pt.is_floating(kind) or any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _native(spark: SparkSession, plan: ScanPlan, filters: Sequence[Predicate]) -> DataFrame:
    schema = spark_schema(plan.schema)
    paths = [split.plain_parquet for split in plan.splits if split.plain_parquet]
    if not paths:
        return spark.createDataFrame([], schema)
    options = _AS_IT_IS | (_ZEROS_ARE_EQUAL if any(_has_floats(field.type) for field in plan.schema) else {})
    df = spark.read.schema(schema).options(**options).parquet(*map(_spark_path, paths))
    for predicate in filters:
        df = df.where(as_column(predicate, plan.schema))
    return df


def _spark_path(path: str) -> str:
    """Spark globs what it is given, so the characters of a pattern are escaped; s3 is s3a in Hadoop."""
    escaped = "".join(f"\\{c}" if c in "*?[]{}\\" else c for c in path)
    return "s3a" + escaped[2:] if escaped.startswith("s3://") else escaped


def _splits(spark: SparkSession, planned: Scan) -> DataFrame:
    schema = spark_schema(planned.schema)
    what = "`read` of a table that is not plain Parquet"
    context = context_of(spark, what, fix='Use `spark.read.format("laketier")`.')
    groups = group_splits(planned.plan.splits, context.defaultParallelism * _TASKS_PER_CORE)
    if not groups:
        return spark.createDataFrame([], schema)
    serializer = planned.source.split_serializer
    packed = [(index, [pack(serializer, split) for split in group]) for index, group in enumerate(groups)]
    work = spark.createDataFrame(
        context.parallelize(packed, len(packed)), "task int not null, splits array<binary> not null"
    )
    return work.mapInArrow(_reading(planned.for_tasks(), reading_schema(schema)), schema)


def _reading(scan: Scan, wanted: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column("splits").to_pylist():
                for data in packed:
                    split: LakeSplit = unpack(scan.source.split_serializer, data)
                    for rows in scan.read(split):
                        yield for_spark(rows, wanted)

    return reading


def as_column(predicate: Predicate, schema: pa.Schema) -> Column:
    """The predicate as Spark's condition on rows of ``schema``, so that Spark can push it into its own reader. It is
    true for the same rows as `laketier.spi.to_arrow` says."""
    match predicate:
        case And(children=children):
            return functools.reduce(lambda a, b: a & b, (as_column(child, schema) for child in children))
        case Or(children=children):
            return functools.reduce(lambda a, b: a | b, (as_column(child, schema) for child in children))
        case Not(child=child):
            return ~as_column(child, schema)
        case Leaf(column=name):
            return _leaf(predicate, F.col(_quoted(name)), schema.field(name).type)
    raise TypeError(f"not a predicate: {predicate!r}")


def _leaf(leaf: Leaf, column: Column, kind: pa.DataType) -> Column:
    match leaf.op:
        case Op.IS_NULL:
            return column.isNull()
        case Op.NOT_NULL:
            return column.isNotNull()
        case Op.STARTS_WITH:
            return column.startswith(leaf.value)
        case Op.IN:
            condition = _is_in(column, leaf.value, kind)
        case _:
            condition = _comparison(column, leaf, kind)
    if not pt.is_floating(kind):
        return condition
    # For Spark NaN is more than any number; and it skips by statistics, which know nothing of NaN. It does not push
    # what this adds to a comparison that is true for NaN, negated or not.
    if leaf.op is Op.NE:
        return condition | F.isnan(column)
    nothing = leaf.op is Op.IN and None in leaf.value  # neither it nor its negation is true
    return F.when(F.isnan(column), F.lit(None)).otherwise(condition) if nothing else condition & ~F.isnan(column)


def _comparison(column: Column, leaf: Leaf, kind: pa.DataType) -> Column:
    compared = exact_comparison(leaf.op, leaf.value, _unless_moments(kind))
    if isinstance(compared, bool):
        return _always(column, compared)
    op, value = compared
    condition: Column = COMPARISONS[op](column, _literal(value))
    return condition


def _is_in(column: Column, values: Sequence[Any], kind: pa.DataType) -> Column:
    if not values:
        return F.lit(False)
    members = [_literal(member) for member in exact_members(values, _unless_moments(kind))]
    if None in values:
        return column.isin(*members, None)
    return column.isin(*members) if members else _always(column, False)


def _unless_moments(kind: pa.DataType) -> pa.DataType | None:
    """The type, None for moments: Spark's have one unit, and compare with each literal as it is."""
    return None if pt.is_timestamp(kind) else kind


def _always(column: Column, answer: bool) -> Column:
    """The answer, and null where the column is."""
    return F.when(column.isNotNull(), F.lit(answer))


def _literal(value: Any) -> Any:
    """A moment as text: pyspark takes one without a zone for one in the zone of this process."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, datetime):
        # By its name, `timestamp` is whichever of the two the session is set to.
        return F.lit(value.isoformat(sep=" ")).cast(TimestampNTZType() if value.tzinfo is None else TimestampType())
    if isinstance(value, date):
        return F.lit(value.isoformat()).cast(DateType())  # as a date, pyspark takes none before the year 1000
    return value
