"""One Spark job with a connector on one side and laketier on the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laketier.spark
from jvm_lake import JvmLake

Each = Callable[[str], JvmLake]
SIDES = [("delta", "iceberg"), ("iceberg", "delta")]


@pytest.mark.parametrize(("source", "target"), SIDES)
def test_a_batch(each: Each, source: str, target: str) -> None:
    read, write = each(source), each(target)
    read.create("id BIGINT, name STRING, at TIMESTAMP")
    read.theirs("INSERT INTO {t} SELECT id, concat('n', id), timestamp_micros(id * 1000001) FROM range(1000)")
    result = laketier.spark.write(read.rows, write.config(pipeline="p", epoch=0))
    assert result.rows == 1000
    again = laketier.spark.write(read.rows, write.config(pipeline="p", epoch=0))
    assert again.outcome.value == "already there"
    read.rows.write.format("laketier").options(**write.keys()).mode("append").save()
    assert write.rows.count() == 2000
    assert read.rows.union(read.rows).exceptAll(write.rows).count() == 0


@pytest.mark.parametrize(("source", "target"), SIDES)
def test_a_stream_with_a_lost_commit(each: Each, source: str, target: str, tmp_path: Path, jvm: SparkSession) -> None:
    """The checkpoint forgets that its last epoch was committed: it is recognised, through the connector's offsets."""
    read, write = each(source), each(target)
    read.create("id BIGINT, name STRING")
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        if source == "delta":
            stream = jvm.readStream.format("delta").load(str(read.path))  # type: ignore[attr-defined]
        else:
            stream = jvm.readStream.format("iceberg").load(read.sql)
        writer = stream.writeStream.format("laketier").options(**write.keys(pipeline="p"))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    for part in range(3):
        read.theirs(f"INSERT INTO {{t}} SELECT id + {part * 100}, 'x' FROM range(100)")
        run()
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    (checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    read.theirs("INSERT INTO {t} SELECT id + 300, 'x' FROM range(100)")
    run()
    assert sorted(row.id for row in write.rows.select("id").collect()) == list(range(400))
