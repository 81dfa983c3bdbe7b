"""Indexes that Spark's tasks build: one part per task, also where an attempt fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

import laketier.spark
from laketier.maintenance.index_builds import IndexProgress
from laketier.maintenance.index_tasks import build_part
from laketier.registry import configure, open_lake
from laketier.spark import indexing
from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    FeatureNotSupported,
    IndexPart,
    IndexPlan,
    IndexResources,
    LakeIndexBuilder,
    Nearest,
    TableDescriptor,
    TablePath,
)
from spark_lake import Target

pytest.importorskip("laketier_lance")


RETRIED = """
import sys
from pyspark import TaskContext
import laketier.spark
from laketier.spark import indexing
from laketier.spi import LakeIndexBuilder

class FailsOnce(LakeIndexBuilder):
    def __init__(self, builder):
        self.builder = builder

    def build(self, part):
        built = self.builder.build(part)
        if part.number == 1 and TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the answer of the first attempt is lost")
        return built

def failing(plan):
    builder = FailsOnce(plan.builder)
    return lambda part: builder.build(part)

indexing._building = failing
spark = laketier.spark.builder(master="local[2,2]").getOrCreate()
options = dict(pair.split("=", 1) for pair in sys.argv[1:])
info = laketier.spark.create_index(spark, options, "kind", "bitmap", tasks=2)
assert (len(info.segments), info.rows_indexed, info.rows_not_indexed) == (2, 300, 0), info
print("created")
"""
"""A local session tries no task again unless its master says so; hence a session of its own."""


@pytest.fixture
def target(tmp_path: Path, spark: SparkSession) -> Target:
    target = Target(tmp_path, "lance")
    for epoch in range(3):
        rows = spark.range(epoch * 100, epoch * 100 + 100, numPartitions=1).selectExpr("id", "id % 7 AS kind")
        laketier.spark.write(rows, target.options(pipeline="p", epoch=epoch))
    return target


def test_each_task_builds_a_part(spark: SparkSession, target: Target) -> None:
    info = laketier.spark.create_index(spark, target.options(), "kind", "btree", tasks=3)
    assert (info.name, info.rows_indexed, info.rows_not_indexed, len(info.segments)) == ("kind_idx", 300, 0, 3)
    found = laketier.spark.read(spark, target.options()).where("kind = 3").count()
    assert found == len([n for n in range(300) if n % 7 == 3])
    with pytest.raises(ConfigError, match="already"):
        laketier.spark.create_index(spark, target.options(), "kind", "btree")
    laketier.spark.write(spark.range(300, 310).selectExpr("id", "id % 7 AS kind"), target.options())
    more = laketier.spark.create_index(spark, target.options(), "kind", "btree", mode="append")
    assert (more.rows_indexed, more.rows_not_indexed) == (310, 0)
    assert set(info.segments) < set(more.segments)


def test_a_model_is_trained_in_one_task(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(tmp_path, "lance", "db.vectors")
    lake = open_lake(configure(target.options()))
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 8))])
    lake.storage.catalog().create_table(TablePath("db", "vectors"), TableDescriptor(schema))
    hashed = "transform(sequence(1, 8), n -> float(hash(id, n) % 1000)) AS v"
    for first in (0, 600):
        rows = spark.range(first, first + 600, numPartitions=1).selectExpr("id", hashed)
        laketier.spark.write(rows, target.options())
    trained = tmp_path / "trained"

    def training(builder: LakeIndexBuilder) -> LakeIndexBuilder:
        assert TaskContext.get() is not None, "the driver has no context of a task"
        with trained.open("a") as notes:
            notes.write(f"{builder.needs_training}\n")
        return builder.train()

    monkeypatch.setattr(indexing, "_train", training)
    options = {"num_partitions": 4, "metric": "cosine"}
    info = laketier.spark.create_index(spark, target.options(), "v", "ivf-flat", options=options, tasks=2)
    assert (info.rows_indexed, len(info.segments), info.options) == (1200, 2, options)
    assert trained.read_text() == "True\n"
    laketier.spark.write(spark.range(1200, 1210).selectExpr("id", hashed), target.options())
    more = laketier.spark.create_index(spark, target.options(), "v", "ivf-flat", mode="append")
    assert (more.rows_not_indexed, more.options, trained.read_text()) == (0, options, "True\n")
    searcher = lake.searcher(lake.load_table())
    for metric in ("cosine", "l2"):
        asked = [Nearest((1.0,) * 8, metric=metric, nprobes=4, exact=exact) for exact in (False, True)]
        found, flat = (searcher.search(query, k=20, columns=["id"]).rows["id"].to_pylist() for query in asked)
        assert found == flat


def test_parts_are_told_as_they_come(
    spark: SparkSession, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = tmp_path / "heard"
    os.mkfifo(heard)

    def waiting(plan: IndexPlan) -> Callable[[IndexPart], BuiltIndexPart]:
        builder, pipe = plan.builder, str(heard)

        def build(part: IndexPart) -> BuiltIndexPart:
            if part.number:
                with open(pipe, "rb") as opened:  # returns once the driver, told of the other part, opens it to write
                    opened.read()
            return builder.build(part)

        return build

    monkeypatch.setattr(indexing, "_building", waiting)
    told: list[IndexProgress] = []

    def progress(done: IndexProgress) -> None:
        told.append(done)
        if done.parts_built == 1:
            heard.write_bytes(b"go on")

    laketier.spark.create_index(spark, target.options(), "kind", "btree", tasks=2, progress=progress)
    assert [(each.parts_built, each.rows_built) for each in told[::2]] == [(0, 0), (2, 300)]
    assert (told[1].parts_built, told[1].rows_built, told[1].rows) in [(1, 100, 300), (1, 200, 300)]


def test_a_bounded_build_has_workers_that_started_with_its_variables(
    spark: SparkSession, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looking(plan: IndexPlan) -> Callable[[IndexPart], BuiltIndexPart]:
        builder, resources = plan.builder, plan.resources

        def build(part: IndexPart) -> BuiltIndexPart:
            started = Path("/proc/self/environ").read_bytes().split(b"\0")
            lacking = {f"{name}={value}".encode() for name, value in builder.environment.items()} - set(started)
            if lacking or not builder.environment:
                raise ConfigError(f"{lacking} of {builder.environment}")
            return build_part(builder, part, resources)

        return build

    monkeypatch.setattr(indexing, "_building", looking)
    told: list[IndexProgress] = []
    target = replace(target, table="db.texts")
    laketier.spark.write(spark.range(9).selectExpr("id", "concat('text ', id) AS text"), target.options())
    resources = IndexResources(workers=1, memory=96 * 1024**2)
    laketier.spark.create_index(
        spark, target.options(), "text", "inverted", tasks=1, resources=resources, progress=told.append
    )
    assert not [name for name in spark.sparkContext.environment if name.startswith("LANCE")]
    assert 0 < told[-1].taken[0] < resources.memory < told[-1].memory[0]


@pytest.mark.deep
def test_a_failed_attempt_is_run_again_alone(target: Target) -> None:
    options = [f"{key}={value}" for key, value in target.options().items()]
    done = subprocess.run([sys.executable, "-c", RETRIED, *options], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["created"], done.stderr
    assert "the answer of the first attempt is lost" in done.stderr
    lake = open_lake(configure(target.options()))
    (info,) = lake.indexer(lake.load_table()).indexes()
    built = {path.name for path in (Path(lake.load_table().location) / "_indices").iterdir()}
    assert (len(built), len(built - set(info.segments))) == (3, 1), "the files of one attempt were never published"


def test_what_does_not_fit_is_refused(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no kind of index 'hash'"):
        laketier.spark.create_index(spark, target.options(), "kind", "hash")
    with pytest.raises(ConfigError, match="no mode 'upsert'"):
        laketier.spark.create_index(spark, target.options(), "kind", "btree", mode="upsert")
    plain = Target(tmp_path, "localfile", "db.plain")
    laketier.spark.write(spark.range(3), plain.options())
    with pytest.raises(FeatureNotSupported, match="localfile does not support indexing"):
        laketier.spark.create_index(spark, plain.options(), "id", "btree")
