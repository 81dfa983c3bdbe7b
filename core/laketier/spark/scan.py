"""``spark.read.format("laketier")``: the splits of a snapshot as Spark's partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from laketier.config import LakeConfig
from laketier.sources import open_source, read_split, scan_request
from laketier.spark.schema import for_spark, reading_schema
from laketier.spi import LakeSplit, Leaf, Not, Op, Predicate


@dataclass
class SplitPartition(InputPartition):
    """A split as a Spark partition."""

    split: LakeSplit
    schema: pa.Schema
    remaining: tuple[Predicate, ...]


class LakeReader(DataSourceReader):
    """Planned on the driver, read on executors. Spark tells a Python data source no columns, so it reads those of
    its schema: all of the table's, or the ones given with ``.schema(…)``."""

    def __init__(self, config: LakeConfig, schema: StructType) -> None:
        self._source = open_source(config)
        self._config = config
        self._schema = schema
        self._filters: tuple[Predicate, ...] = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Driver."""
        plan = self._source.plan(scan_request(self._config, self._schema.fieldNames(), self._filters))
        return [SplitPartition(split, plan.schema, plan.remaining) for split in plan.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Executor."""
        if not isinstance(partition, SplitPartition):
            return  # Spark makes up a partition where there is none
        wanted = reading_schema(self._schema)
        for batch in read_split(self._source, partition.split, partition.schema, partition.remaining):
            yield for_spark(batch, wanted)


class PushingLakeReader(LakeReader):
    """Takes filters as well. A class of its own, as Spark refuses any reader with ``pushFilters`` while
    spark.sql.python.filterPushdown.enabled is off."""

    def pushFilters(  # noqa: N802 - Spark's name
        self, filters: list[datasource.Filter]
    ) -> Iterable[datasource.Filter]:
        """Keep what can be said as a predicate for planning. All of them go back to Spark, which applies them again:
        its comparison, not ours, decides (NaN, collations)."""
        self._filters = tuple(p for p in map(predicate_of, filters) if p is not None)
        return filters


_COMPARISONS: tuple[tuple[type[datasource.Filter], Op], ...] = (
    (datasource.EqualTo, Op.EQ),
    (datasource.GreaterThan, Op.GT),
    (datasource.GreaterThanOrEqual, Op.GE),
    (datasource.LessThan, Op.LT),
    (datasource.LessThanOrEqual, Op.LE),
    (datasource.StringStartsWith, Op.STARTS_WITH),
)


def predicate_of(pushed: datasource.Filter) -> Predicate | None:
    """Spark's filter as ours, None where it has no counterpart (nested columns, ``<=>``, suffixes)."""
    if isinstance(pushed, datasource.Not):
        child = predicate_of(pushed.child)
        return None if child is None else Not(child)
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1:
        return None
    column = path[0]
    if isinstance(pushed, datasource.IsNull):
        return Leaf(column, Op.IS_NULL)
    if isinstance(pushed, datasource.IsNotNull):
        return Leaf(column, Op.NOT_NULL)
    if isinstance(pushed, datasource.In):
        return Leaf(column, Op.IN, tuple(pushed.value))
    for kind, op in _COMPARISONS:
        if isinstance(pushed, kind):
            return Leaf(column, op, getattr(pushed, "value", None))
    return None
