"""Lake and log as one, in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from laketier.config.origins import SPARK_KEYS
from laketier.config.parsing import STRIPPED, TextKeys, own_options, parsed
from laketier.config.suggest import did_you_mean
from laketier.spark.classic import context_of
from laketier.spark.schema import for_spark, reading_schema, spark_schema
from laketier.spi import ConfigError, Predicate, ScanRequest

# Every process in which Spark runs the data source imports this module, and few of them read a union.
if TYPE_CHECKING:
    from laketier.union_read.scan import UnionScan, UnionSplit

UNION = "union"
SERVICE = "lake.service"
_TABLE = "lake.table"
_KEYS = (SERVICE, _TABLE)
_ORIGIN = "the options"
_TASKS_PER_CORE = 2


class UnionKeys(TextKeys):
    """Options of Spark for a union read. The service file names the lake table and the log."""

    union: Annotated[bool, STRIPPED] = Field(False, description="Whether to read lake and log as one.")
    service: str | None = Field(None, alias="lake.service", description="The service file.")
    table: str | None = Field(None, alias="lake.table", description="The table, as source.table; or `.load`.")


@dataclass(frozen=True)
class UnionOptions:
    """``option("union", "true")``: which table of which service file."""

    service: str
    table: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> UnionOptions | None:
        """None when no union is asked for. Raises `ConfigError` for what does not belong to one."""
        asked = [value for key, value in options.items() if key.lower() == UNION]
        if not asked or not parsed(UnionKeys, {UNION: asked[0]}, origin=_ORIGIN).union:
            return None
        given = own_options(UnionKeys, options, SPARK_KEYS)
        stray = sorted(key for key in given if key.lower().startswith("lake.") and key not in _KEYS)
        if stray:
            raise ConfigError(
                f"{stray[0]!r} is not for a union read",
                where=_ORIGIN,
                why="the service file says which lake table and which log",
                fix=did_you_mean(stray[0], _KEYS),
            )
        keys = parsed(UnionKeys, given, origin=_ORIGIN)
        table = keys.table or next((value for key, value in options.items() if key.lower() == "path"), None)
        if keys.service is None or table is None:
            raise ConfigError(
                f"a union read needs {_TABLE if keys.service else SERVICE}",
                where=_ORIGIN,
                fix='Write .option("lake.service", "service.yaml").load("source.table").',
            )
        return cls(keys.service, table)

    def plan(self, request: ScanRequest | None = None, *, is_looked_at_again: bool = False) -> UnionScan:
        """Plan on the driver. ``is_looked_at_again``: where the plan is read. Raises as
        `laketier.union_read.planning.plan_union`."""
        from laketier.rounds.configured_logs import open_configured_table
        from laketier.union_read.planning import plan_union

        table, log = open_configured_table(self.service, self.table)
        return plan_union(
            table.config,
            log,
            request,
            tolerant=table.leaves_out_bad_records,
            is_looked_at_again=is_looked_at_again,
        )


@dataclass
class UnionPartition(InputPartition):
    """A split of either half, or of both, as a Spark partition."""

    split: UnionSplit
    scan: UnionScan


class UnionReader(DataSourceReader):
    """Planned on the driver, read on executors."""

    def __init__(self, options: UnionOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Driver."""
        request = ScanRequest(columns=tuple(self._schema.fieldNames()))
        planned = self._options.plan(request, is_looked_at_again=True)
        scan = planned.for_tasks()
        return [UnionPartition(split, scan) for split in planned.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Executor."""
        if not isinstance(partition, UnionPartition):
            return  # Spark makes up a partition where there is none
        wanted = reading_schema(self._schema)
        for batch in partition.scan.read_in_task((partition.split,)):
            yield for_spark(batch, wanted)


def read_union(
    spark: SparkSession,
    table: str,
    *,
    service: str,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
) -> DataFrame:
    """Read lake and log of a table as one DataFrame. Driver.

    The call plans the read, with columns and filters pushed down to both sides. Each action reads the same rows. It
    fails where the log's table was made again or put back since the plan, if the log can tell on executors.

    Args:
        spark: The session.
        table: ``source.table``, or the lake table's name.
        service: The service file that configures the table.
        columns: The columns to read. None reads all.
        filters: Predicates that each row has to fulfil.

    Returns:
        The DataFrame.

    Raises:
        LaketierError: As `laketier.read_union`.
    """
    request = ScanRequest(columns=None if columns is None else tuple(columns), filters=tuple(filters))
    planned = UnionOptions(service, table).plan(request, is_looked_at_again=True)
    schema = spark_schema(planned.schema)
    if not planned.splits:
        return spark.createDataFrame([], schema)
    context = context_of(spark, "`read_union`", fix='Use `spark.read.format("laketier")` for the lake alone.')
    tasks = min(len(planned.splits), context.defaultParallelism * _TASKS_PER_CORE)
    groups = [(index, list(planned.splits[index::tasks])) for index in range(tasks)]
    scan = planned.for_tasks()
    # mapInArrow needs rows to start from: a number for each task, which its group is looked up by.
    work = spark.createDataFrame(context.parallelize([(index,) for index, _ in groups], tasks), "task int")
    return work.mapInArrow(_reading(scan, dict(groups), reading_schema(schema)), schema)


def _reading(
    scan: UnionScan, groups: Mapping[int, Sequence[UnionSplit]], wanted: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column("task").to_pylist():
                for rows in scan.read_in_task(groups[task]):
                    yield for_spark(rows, wanted)

    return reading
