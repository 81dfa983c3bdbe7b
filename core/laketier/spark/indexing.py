"""Indexes, built by Spark's tasks: one part each, and one commit on the driver."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from laketier.config import LakeConfig
from laketier.registry import open_lake
from laketier.registry.commands import naming_format
from laketier.spark.target import as_config
from laketier.spi import BuiltIndexPart, ConfigError, IndexInfo, IndexKind, IndexMode, IndexPart, IndexPlan, IndexSpec

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
        mode: ``create`` (there must be none of that name), ``replace``, or ``append`` (index what it does not cover).
        tasks: The number of tasks at most; twice the cores by default.

    Returns:
        The index as it is in the table.

    Raises:
        ConfigError: The kind, the column, an option or the mode does not fit, or the index is there already.
        FeatureNotSupported: The format builds no indexes, or not this kind.
        TableChanged: Rows were rewritten while it was built. Nothing was published; call it again.
        CommitError: It was not published, or it is unknown whether it was.
    """
    config = as_config(config, spark)
    spec = IndexSpec(name or f"{column}_idx", column, _member(IndexKind, kind, "kind"), dict(options or {}))
    chosen = _member(IndexMode, mode, "mode")
    lake = open_lake(config)
    with naming_format(config.format):
        indexer = lake.indexer(lake.load_table())
        plan = indexer.plan(spec, tasks or spark.sparkContext.defaultParallelism * _TASKS_PER_CORE, chosen)
        return indexer.publish(plan, _built(spark, plan))


def _built(spark: SparkSession, plan: IndexPlan) -> Sequence[BuiltIndexPart]:
    """The parts, each built by a task. What they did is logged as they come."""
    if not plan.parts:
        return []
    context = spark.sparkContext
    rows = sum(part.rows for part in plan.parts)
    log.info("index %s: %d parts, %d rows", plan.spec.name, len(plan.parts), rows)
    group = f"laketier-index-{uuid.uuid4().hex}"
    work = context.parallelize(plan.parts, len(plan.parts))
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"{group}: {plan.spec.name} of {plan.spec.column}, {len(plan.parts)} parts, {rows} rows")
    built: list[BuiltIndexPart] = []
    try:
        for each in work.map(_building(plan)).collect():
            built.append(each)
            done = sum(part.rows for part in built)
            log.info("index %s: %d of %d parts, %d of %d rows", plan.spec.name, len(built), len(plan.parts), done, rows)
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type] # None takes it away
    return built


def _building(plan: IndexPlan) -> Callable[[IndexPart], BuiltIndexPart]:
    return plan.builder.build


def _member(kinds: Any, text: str, what: str) -> Any:
    try:
        return kinds(text.lower().replace("_", "-"))
    except ValueError as error:
        known = ", ".join(kinds)
        raise ConfigError(f"there is no {what} {text!r}", why=f"there are {known}", fix="Choose one.") from error
