"""Indexes that follow a stream on Spark, between its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from laketier.config import LakeConfig
from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.index_upkeep import IndexUpkeep, maintain_lake_indexes
from laketier.maintenance.table_policies import policies_of_table
from laketier.registry import open_lake
from laketier.spark.indexing import build_in_tasks, tasks_at_most, train_in_task
from laketier.spark.target import as_config
from laketier.spi import TableNotFound


def maintain_indexes(
    spark: SparkSession,
    config: LakeConfig | Mapping[str, Any],
    policies: Sequence[IndexPolicy] | None = None,
    *,
    tasks: int | None = None,
) -> tuple[IndexUpkeep, ...]:
    """Do what the policies of a table's indexes ask for, now: create, append, merge, or build anew. Driver.

    For a stream's ``foreachBatch``, after `write_batch`, or after any write. Where nothing is due it reads the table's
    metadata and runs no job. What fails is logged in the result, not raised: an index must not end a stream.

    Args:
        spark: The session.
        config: The table.
        policies: Its policies. By default those that its property ``laketier.indexes`` has.
        tasks: The tasks of a build at most; twice the cores by default.

    Returns:
        What became of each index, in the order of the policies: its steps, and its ``error``.

    Raises:
        FeatureNotSupported: The format builds no indexes, or the session is one of Spark Connect.
        ConfigError: The configuration, or the table's property, does not fit.
        TableError: The table could not be read.
        StorageError: The storage refused.
    """
    by_default = tasks_at_most(spark)
    lake = open_lake(as_config(config, spark))
    if policies is None:
        try:
            policies = policies_of_table(lake.load_table())
        except TableNotFound:
            return ()
    return maintain_lake_indexes(
        lake,
        policies,
        build=build_in_tasks(spark),
        max_parts=tasks or by_default,
        train=train_in_task(spark),
    )
