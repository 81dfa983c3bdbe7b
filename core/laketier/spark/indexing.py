"""Indexes, built by Spark's tasks: one part each, and one commit on the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import Any

from pyspark import Accumulator, AccumulatorParam, InheritableThread, SparkContext
from pyspark.sql import SparkSession

from laketier.config import LakeConfig
from laketier.maintenance.index_builds import (
    BuildParts,
    IndexProgress,
    Told,
    Train,
    build_index,
    index_kind,
    index_mode,
    said_beside,
)
from laketier.maintenance.index_tasks import build_part
from laketier.registry import open_lake
from laketier.registry.commands import naming_format
from laketier.spark.classic import context_of
from laketier.spark.failures import cause_of
from laketier.spark.target import as_config
from laketier.spi import (
    UNLIMITED,
    BuiltIndexPart,
    IndexInfo,
    IndexPart,
    IndexPlan,
    IndexResources,
    IndexSpec,
    LakeIndexBuilder,
    StorageError,
)

log = logging.getLogger(__name__)

_TASKS_PER_CORE = 2


def create_index(
    spark: SparkSession,
    config: LakeConfig | Mapping[str, Any],
    column: str,
    kind: str,
    *,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    mode: str = "create",
    tasks: int | None = None,
    progress: Told | None = None,
    resume: bool = True,
    resources: IndexResources = UNLIMITED,
    max_segments: int | None = None,
) -> IndexInfo:
    """Build an index of a table with one Spark task per part, and publish it in one atomic step. Driver.

    A task that fails is tried again by Spark, alone; what its first attempt left is never published, and orphan
    collection deletes it. Each task reads the same snapshot. A failed build leaves the table as it was.

    Args:
        spark: The session.
        config: The table.
        column: The column.
        kind: An `IndexKind`, such as ``inverted`` or ``btree``.
        name: The index's name. By default ``<column>_idx``.
        options: Settings of the kind.
        mode: ``create`` (there must be none of that name), ``replace``, ``append`` (index what it does not cover), or
            ``merge`` (its segments become ``tasks`` at most).
        tasks: The number of tasks at most; twice the cores by default.
        progress: Called before the first task and after each, in the calling thread. By default it is logged.
        resume: Whether to use the parts that an earlier build of this index had finished when its driver died.
        resources: What each task may take: tasks at a time, memory, size of a full-text partition, a place to spill to.
        max_segments: The segments that a query has to ask at most: more are merged by a second job. By default as many
            as there are tasks.

    Returns:
        The index as it is in the table.

    Raises:
        ConfigError: The kind, the column, an option or the mode does not fit, or the index is there already.
        FeatureNotSupported: The format builds no indexes, or not this kind, or the session is one of Spark Connect.
        TableChanged: Rows were rewritten again and again while it was built. Nothing was published; call it again.
        CommitError: It was not published, or it is unknown whether it was.
    """
    _context(spark)
    config = as_config(config, spark)
    spec = IndexSpec(name or f"{column}_idx", column, index_kind(kind), dict(options or {}))
    chosen = index_mode(mode)
    lake = open_lake(config)
    with naming_format(config.format):
        return build_index(
            lake.indexer(lake.load_table()),
            spec,
            chosen,
            max_parts=tasks or tasks_at_most(spark),
            build=build_in_tasks(spark),
            train=train_in_task(spark),
            told=progress or _logged,
            resume=resume,
            resources=resources,
            max_segments=max_segments,
        )


def _context(spark: SparkSession) -> SparkContext:
    fix = "Build it in a session of the driver's own, or without Spark: `laketier index create`. Searches work here."
    return context_of(spark, "a build of an index", fix=fix)


def tasks_at_most(spark: SparkSession) -> int:
    """How many tasks a build has where nobody says it: so many that the cores end at about the same time."""
    return _context(spark).defaultParallelism * _TASKS_PER_CORE


def train_in_task(spark: SparkSession) -> Train:
    """Train in one of Spark's tasks: the sample is read where the data is, and the driver gets the model alone."""

    def train(builder: LakeIndexBuilder) -> LakeIndexBuilder:
        (trained,) = _context(spark).parallelize([builder], 1).map(_train).collect()
        return trained

    return train


def build_in_tasks(spark: SparkSession, *, at_once: int | None = None) -> BuildParts:
    """Build parts in Spark's tasks. A `BuildParts`: gives each part as its task ends, though Spark's own ``collect``
    gives all at the end. An iterator that is left early cancels its tasks.

    Args:
        spark: The session.
        at_once: So many tasks at a time at most, so that other jobs find free cores. None: as many as Spark runs.

    Returns:
        What builds the parts of a plan.
    """

    def build(plan: IndexPlan) -> Iterator[BuiltIndexPart]:
        limits = [each for each in (at_once, plan.resources.workers) if each is not None]
        most = min(limits, default=len(plan.parts))
        for first in range(0, len(plan.parts), most):
            yield from _in_job(spark, plan, plan.parts[first : first + most])

    return build


def _train(builder: LakeIndexBuilder) -> LakeIndexBuilder:
    return builder.train()


def _in_job(spark: SparkSession, plan: IndexPlan, parts: Sequence[IndexPart]) -> Iterator[BuiltIndexPart]:
    context = _context(spark)
    ended: SimpleQueue[BuiltIndexPart | None] = SimpleQueue()
    arrivals = context.accumulator([], _Arrivals(ended.put))
    rows = sum(part.rows for part in parts)
    work = context.parallelize(parts, len(parts)).map(_announcing(_building(plan), arrivals))
    with _in_workers_with(context, plan.builder.environment):
        work.id()  # Spark makes the function now, with the variables of its workers
    failures: list[Exception] = []
    tag = f"laketier-index-{plan.plan_id}"

    def collect() -> None:
        try:
            context.addJobTag(tag)
            context.setJobDescription(f"index {plan.spec.name} of {plan.spec.column}, {len(parts)} parts, {rows} rows")
            for each in work.collect():
                ended.put(each)
        except Exception as error:  # noqa: BLE001 - raised by the caller's thread, below
            failures.append(error)
        finally:
            ended.put(None)

    # A thread of its own, so that the caller's job description and tags stay as they are.
    running = InheritableThread(target=collect, daemon=True, session=spark)
    running.start()
    told: set[int] = set()
    try:
        while (each := ended.get()) is not None:
            if each.part.number not in told:
                told.add(each.part.number)
                yield each
    finally:
        if running.is_alive() and len(told) < len(parts):
            context.cancelJobsWithTag(tag)
        running.join()
    if failures:
        unknown = StorageError(
            "the Spark job that built the parts of an index failed; nothing was published",
            why=f"{failures[0]}".partition("\n")[0],
            fix="See Spark's log, and build it again.",
        )
        raise cause_of(failures[0]) or unknown from failures[0]


_ENVIRONMENT = Lock()


@contextmanager
def _in_workers_with(context: SparkContext, variables: Mapping[str, str]) -> Iterator[None]:
    """What is made of functions meanwhile runs in workers of Python with these variables. Spark gives no job a worker
    that was started with others, so what libraries read once in a process is read with them."""
    if not variables:
        yield
        return
    with _ENVIRONMENT:
        # Another one in its place: other threads may go through it at this moment.
        before = context.environment
        context.environment = {**before, **variables}
        try:
            yield
        finally:
            context.environment = before


class _Arrivals(AccumulatorParam[list[BuiltIndexPart]]):
    """Hands each task's result over on the driver as soon as Spark counts the task as done: an accumulator is the only
    thing of a running job that PySpark tells."""

    def __init__(self, arrived: Callable[[BuiltIndexPart], None] | None = None) -> None:
        self._arrived = arrived

    def __getstate__(self) -> dict[str, Any]:
        return {"_arrived": None}  # tasks only collect

    def zero(self, value: list[BuiltIndexPart]) -> list[BuiltIndexPart]:
        return []

    def addInPlace(self, value1: list[BuiltIndexPart], value2: list[BuiltIndexPart]) -> list[BuiltIndexPart]:  # noqa: N802
        if self._arrived is None:
            return value1 + value2
        for each in value2:
            self._arrived(each)
        return value1


def _announcing(
    building: Callable[[IndexPart], BuiltIndexPart], arrivals: Accumulator[list[BuiltIndexPart]]
) -> Callable[[IndexPart], BuiltIndexPart]:
    def build(part: IndexPart) -> BuiltIndexPart:
        built = building(part)
        arrivals.add([built])
        return built

    return build


def _building(plan: IndexPlan) -> Callable[[IndexPart], BuiltIndexPart]:
    return partial(_build, plan.builder, plan.resources)


def _build(builder: LakeIndexBuilder, resources: IndexResources, part: IndexPart) -> BuiltIndexPart:
    return build_part(builder, part, resources)


def _logged(done: IndexProgress) -> None:
    parts, rows = f"{done.parts_built} of {done.parts}", f"{done.rows_built} of {done.rows}"
    log.info("index %s: %s parts, %s rows%s", done.name, parts, rows, said_beside(done))
