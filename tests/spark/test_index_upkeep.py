"""Indexes that follow a stream, kept up in its foreachBatch; and builds that leave cores to others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import laketier.spark
from laketier.maintenance.index_builds import build_index
from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.table_policies import INDEXES
from laketier.registry import configure, open_lake
from laketier.spark import indexing
from laketier.spi import (
    BuiltIndexPart,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexSpec,
    TableDescriptor,
    TableError,
)
from spark_lake import Landing, Target

pytest.importorskip("laketier_lance")

BY_ID = IndexSpec("ids", "id", IndexKind.BTREE)


def test_a_stream_and_its_index(spark: SparkSession, tmp_path: Path) -> None:
    landing, target = Landing(tmp_path / "landing"), Target(tmp_path, "lance")
    landing.land(6)
    config = target.options(pipeline="p")
    taken: list[list[str]] = []

    def each(df: DataFrame, batch_id: int) -> None:
        laketier.spark.write_batch(df, batch_id, config)
        (done,) = laketier.spark.maintain_indexes(spark, config, [IndexPolicy(BY_ID, 20, None, max_segments=2)])
        assert done.error is None
        taken.append([step.step.value for step in done.steps])

    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(landing.folder))
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(target.checkpoint))
    laketier.spark.await_termination(query.trigger(availableNow=True).start())
    # Of ten rows each: one is too few to append.
    assert taken == [["create"], [], ["append"], [], ["append", "merge"], []]
    found = laketier.spark.read(spark, target.options()).where("id >= 25").count()
    assert found == 35


def test_a_build_leaves_cores_to_others(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(tmp_path, "lance")
    for _ in range(3):
        laketier.spark.write(spark.range(100, numPartitions=1), target.options())
    lake = open_lake(configure(target.options()))
    indexer = lake.indexer(lake.load_table())
    asked: list[int] = []
    job = indexing._in_job

    def counted(session: SparkSession, plan: IndexPlan, parts: Sequence[IndexPart]) -> Iterator[BuiltIndexPart]:
        asked.append(len(parts))
        return job(session, plan, parts)

    monkeypatch.setattr(indexing, "_in_job", counted)
    build = indexing.build_in_tasks(spark, at_once=2)
    info = build_index(indexer, BY_ID, IndexMode.CREATE, max_parts=3, build=build)
    assert (asked, len(info.segments), info.rows_not_indexed) == ([2, 1], 3, 0)


def test_an_error_of_a_task_is_the_one_that_is_raised(spark: SparkSession, tmp_path: Path) -> None:
    target = Target(tmp_path, "lance")
    laketier.spark.write(spark.range(9).selectExpr("id"), target.options())
    for file in tmp_path.rglob("data/*.lance"):  # what a plan does not look at
        file.write_bytes(file.read_bytes()[:-8] + b"no lance")
    with pytest.raises(TableError, match="could not build part"):
        laketier.spark.create_index(spark, target.options(), "id", "btree")


def test_a_table_carries_its_policies_and_models_are_trained_in_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part is built, and no model is trained, in the driver."""
    lance_builder = pytest.importorskip("laketier_lance.index_builder").LanceIndexBuilder
    target = Target(tmp_path, "lance")
    lake = open_lake(configure(target.options()))
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 4))])
    said = [
        {"column": "v", "kind": "ivf-flat", "options": {"num_partitions": 4}},
        {"column": "id", "kind": "btree", "memory": "64 MiB"},
    ]
    descriptor = TableDescriptor(schema, properties={INDEXES: json.dumps(said)})
    assert laketier.spark.maintain_indexes(spark, target.options()) == ()
    lake.storage.catalog().create_table(lake.config.table, descriptor)
    rows = spark.range(400, numPartitions=2).selectExpr("id", "transform(sequence(1, 4), n -> float(id % 97 + n)) AS v")
    laketier.spark.write(rows, target.options())

    def here(*_: object) -> None:
        raise AssertionError("in the driver")

    monkeypatch.setattr(lance_builder, "train", here)
    monkeypatch.setattr(lance_builder, "build", here)
    vectors, ids = laketier.spark.maintain_indexes(spark, target.options(), tasks=2)
    assert (vectors.error, ids.error) == (None, None)
    assert vectors.info is not None
    assert ids.info is not None
    assert (vectors.info.rows_indexed, ids.info.rows_indexed, len(vectors.info.segments)) == (400, 400, 2)
