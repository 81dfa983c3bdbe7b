"""The two lanes of a batch that we drive ourselves: DataFrame (`write`) and split (`tier`).

Both decide before anything runs, stage in Spark's tasks, and publish here, in the caller's process. So, unlike the data
source, they know for certain when a commit was not reached, and delete what was staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from laketier.config import LakeConfig
from laketier.registry import naming_commands
from laketier.spark.arrow_batches import arrow_batches
from laketier.spark.batch_writer import FOREACH_BATCH
from laketier.spark.classic import context_of, is_connect
from laketier.spark.failures import cause_of
from laketier.spark.messages import stage
from laketier.spark.overwriting import is_partitioned, refuse_dynamic_session
from laketier.spark.running_query import in_foreach_batch
from laketier.spark.schema import table_schema
from laketier.spark.target import (
    Target,
    as_config,
    batch_token,
    prepare,
    round_log,
    warn_at_least_once,
    warn_once,
    warn_unread,
)
from laketier.spi import (
    ConfigError,
    Decision,
    LakeSource,
    LakeSplit,
    LakeTieringFactory,
    Predicate,
    ScanRequest,
    Token,
    WriteMode,
)
from laketier.tables import Scan, changed, group_splits, open_source, plan_content, plan_scan, scan_request, trusted
from laketier.tiering import RoundResult, TieringRound

_TASKS_PER_CORE = 2
_MESSAGE = "message"


def write(df: DataFrame, config: LakeConfig | Mapping[str, Any], *, mode: str = "append") -> RoundResult:
    """Write a DataFrame as one round, by mapInArrow and under our Arrow setting. Driver.

    ``mode``: ``append`` or ``overwrite``. With ``lake.pipeline`` and ``lake.epoch`` it is idempotent; without them a
    repeated call appends again: an epoch that is in the table is left as it is, ``df`` is not read, and a warning says
    so. In a foreachBatch use `laketier.spark.write_batch`, which knows the checkpoint. Raises
    `ConfigError` and `TableError` before any job, and `Refused` or a `CommitError` as `TieringRound.commit`.
    """
    config = as_config(config, df.sparkSession)
    chosen = write_mode(mode, config)
    schema = table_schema(df.schema)
    token = batch_token(config)
    if token is not None and in_foreach_batch(df):
        warn_once(round_log(__name__, config, config.epoch), "foreachBatch", str(config.table), message=FOREACH_BATCH)
    with naming_commands(config, token):
        tiering, target, begin = _round(df.sparkSession, config, schema, chosen, token)

        def run(staged: Accumulator[list[bytes]] | None) -> list[bytes]:
            return stage_frame(df, schema, target.factory, chosen, tiering.attempts_after, staged)

        result = drive(df.sparkSession, tiering, run, config, config.epoch, begin)
    warn_unread(round_log(__name__, config, config.epoch), token, result)
    return result


def stage_frame(
    df: DataFrame,
    schema: pa.Schema,
    factory: LakeTieringFactory[Any],
    mode: WriteMode,
    attempts_after: int,
    staged: Accumulator[list[bytes]] | None,
) -> list[bytes]:
    """Stage the rows of ``df`` in its own tasks, and return their messages. Driver."""
    with arrow_batches(df.sparkSession, schema):
        staging = _staging(factory, mode, attempts_after, staged)
        return [row[_MESSAGE] for row in df.mapInArrow(staging, f"{_MESSAGE} binary").collect()]


def tier(
    spark: SparkSession,
    source: LakeSource | LakeConfig | Mapping[str, Any],
    config: LakeConfig | Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
    mode: str = "append",
    tasks: int | None = None,
) -> RoundResult:
    """Move a source into a table as one round in which each task reads its own splits in Arrow and writes them: no row
    crosses the JVM. Driver.

    ``source``: a `laketier.connectors.ParquetFolder`, any other `LakeSource`, or the configuration of a laketier table.
    ``tasks``: how many tasks to spread the splits over; twice the cores by default. Idempotent with ``lake.pipeline``
    and ``lake.epoch``: then the same epoch with other input is refused. Raises as `write`.
    """
    context = context_of(spark, "`tier`", fix="Read with Spark, and `write` the DataFrame.")
    config = as_config(config, spark)
    chosen = write_mode(mode, config)
    reading, request = _opened(spark, source, columns, filters)
    planned = plan_scan(reading, request)
    token = batch_token(config, content=plan_content(request, planned.plan))
    groups = group_splits(planned.plan.splits, tasks or context.defaultParallelism * _TASKS_PER_CORE)
    with naming_commands(config, token):
        tiering, target, begin = _round(spark, config, planned.schema, chosen, token)
        scan = planned.for_tasks()

        def run(staged: Accumulator[list[bytes]] | None) -> list[bytes]:
            if not groups:
                return []
            work = context.parallelize(list(enumerate(groups)), len(groups))
            return work.map(_splitting(target.factory, scan, chosen, tiering.attempts_after, staged)).collect()

        return drive(spark, tiering, run, config, config.epoch, begin)


def _round(
    spark: SparkSession, config: LakeConfig, schema: pa.Schema, mode: WriteMode, token: Token | None
) -> tuple[TieringRound, Target, Callable[[], Decision]]:
    """The round, its table, and what begins it."""
    if token is None:
        warn_at_least_once(round_log(__name__, config), config)
    target = prepare(config, schema, mode, token)
    tiering = TieringRound(target.factory, token=token, mode=mode)

    def begin() -> Decision:
        decision = tiering.begin(target.state)
        if decision is not Decision.DONE:  # an epoch that is there changes nothing, whatever the session is set to
            refuse_dynamic_session(spark, mode, str(config.table), partitioned=is_partitioned(target.table))
        return decision

    return tiering, target, begin


class _Messages(AccumulatorParam[list[bytes]]):
    def zero(self, value: list[bytes]) -> list[bytes]:
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        return [*value1, *value2]


_idle: WeakKeyDictionary[SparkContext, list[Accumulator[list[bytes]]]] = WeakKeyDictionary()
"""Accumulators that no round uses now, by their context: Python never forgets one that was made."""


@contextmanager
def _accumulator(spark: SparkSession) -> Iterator[Accumulator[list[bytes]] | None]:
    """One for this round; None on Spark Connect, which has none."""
    if is_connect(spark):
        yield None
        return
    context = spark.sparkContext
    idle = _idle.setdefault(context, [])
    try:
        staged = idle.pop()
    except IndexError:
        staged = context.accumulator([], _Messages())
    try:
        yield staged
    finally:
        staged.value = []
        idle.append(staged)


def drive(
    spark: SparkSession,
    tiering: TieringRound,
    run: Callable[[Accumulator[list[bytes]] | None], list[bytes]],
    config: LakeConfig,
    epoch: int | None,
    begin: Callable[[], Decision],
) -> RoundResult:
    """Decide, run, publish. Driver. Of a job that fails, what its finished tasks staged comes back in an accumulator,
    and is deleted; what a task stages that ends later is orphan collection's."""
    log = round_log(__name__, config, epoch)
    with trusted(config), _accumulator(spark) as staged:
        try:
            decision = begin()
            messages = [] if decision is Decision.DONE else run(staged)
        except BaseException as error:
            tiering.abort_messages([] if staged is None else staged.value, commit_was_called=False)
            cause = cause_of(error)
            if cause is None or cause is error:
                raise
            raise cause from None  # the sentence once; Spark's pages around it stay in __context__
    with trusted(config):
        result = tiering.confirm_done() if decision is Decision.DONE else tiering.commit_messages(messages)
    changed(config)
    log.info("%s: %d rows, %d files, %d bytes", result.outcome.value, result.rows, result.files, result.bytes)
    return result


def write_mode(mode: str, config: LakeConfig) -> WriteMode:
    """The mode as users name it. Raises `ConfigError`."""
    modes = {"append": WriteMode.APPEND, "overwrite": WriteMode.OVERWRITE}
    if mode not in modes:
        raise ConfigError(f"mode {mode!r} is not one of {', '.join(modes)}", where=str(config.table))
    return modes[mode]


def _opened(
    spark: SparkSession,
    source: LakeSource | LakeConfig | Mapping[str, Any],
    columns: Sequence[str] | None,
    filters: Iterable[Predicate],
) -> tuple[LakeSource, ScanRequest]:
    """The source, and what to read of it."""
    if isinstance(source, LakeSource):
        wanted = None if columns is None else tuple(columns)
        return source, ScanRequest(columns=wanted, filters=tuple(filters))
    config = as_config(source, spark)
    return open_source(config), scan_request(config, columns, filters)


# What follows is pickled to executors. Closures, not classes: Spark pickles them by what they hold.


def _staging(
    factory: LakeTieringFactory[Any],
    mode: WriteMode,
    attempts_after: int,
    staged: Accumulator[list[bytes]] | None,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def staging(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        message = stage(factory, batches, mode=mode, attempts_after=attempts_after)
        if staged is not None:
            staged.add([message])
        yield pa.record_batch([pa.array([message], pa.binary())], names=[_MESSAGE])

    return staging


def _splitting(
    factory: LakeTieringFactory[Any],
    scan: Scan,
    mode: WriteMode,
    attempts_after: int,
    staged: Accumulator[list[bytes]] | None,
) -> Callable[[tuple[int, Sequence[LakeSplit]]], bytes]:
    def splitting(work: tuple[int, Sequence[LakeSplit]]) -> bytes:
        index, splits = work
        batches = (batch for split in splits for batch in scan.read(split))
        message = stage(factory, batches, mode=mode, partition=index, attempts_after=attempts_after)
        if staged is not None:
            staged.add([message])
        return message

    return splitting
