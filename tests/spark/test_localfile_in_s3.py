"""Tables of local files in a bucket, written and read by Spark's tasks, which reach it by the keys of the job alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from faulty_s3 import BUCKET, KEY, REGION, Fault, FaultyS3, faulty_s3
from spark_lake import Landing, Target


@pytest.fixture(scope="module")
def s3() -> Iterator[FaultyS3]:
    with faulty_s3() as service:
        yield service


class InS3(Target):
    """``folder`` has the checkpoint, and names the prefix."""

    s3: FaultyS3

    def options(self, **more: Any) -> dict[str, str]:
        storage = {"endpoint": self.s3.url, "region": REGION, "access_key_id": KEY, "secret_access_key": KEY}
        keys = {f"lake.localfile.storage.{name}": value for name, value in storage.items()}
        return super().options(**more) | keys | {"lake.warehouse": f"s3://{BUCKET}/{self.folder.name}"}

    def plain_ids(self) -> list[int]:
        """What Polars finds in the bucket by the names of files."""
        told = {"aws_endpoint_url": self.s3.url, "aws_region": REGION, "aws_allow_http": "true"}
        told |= {"aws_access_key_id": KEY, "aws_secret_access_key": KEY}
        files = f"s3://{BUCKET}/{self.folder.name}/db/events/**/*.parquet"
        rows = pl.scan_parquet(files, storage_options=told, hive_partitioning=False).select("id").collect()
        return sorted(rows["id"].to_list())


@pytest.fixture
def in_s3(s3: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InS3:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    found = InS3(tmp_path, "localfile")
    found.s3 = s3
    return found


@pytest.mark.deep
def test_batches(spark: SparkSession, in_s3: InS3) -> None:
    def write(mode: str, ids: range, **more: Any) -> None:
        rows = spark.range(ids.start, ids.stop, numPartitions=3).selectExpr("id", "concat('k', id % 2) AS kind")
        options = in_s3.options(partition_by="kind", **more)
        rows.write.format("laketier").options(**options).mode(mode).save()

    for _ in range(2):
        write("append", range(12), pipeline="nightly", epoch=0)
    write("append", range(12, 18), pipeline="nightly", epoch=1)
    assert in_s3.ids(spark) == in_s3.plain_ids() == list(range(18))
    filtered = spark.read.format("laketier").options(**in_s3.options()).load().where("kind = 'k1' AND id > 8")
    assert sorted(row.id for row in filtered.collect()) == [9, 11, 13, 15, 17]
    write("overwrite", range(5))
    assert in_s3.ids(spark) == in_s3.plain_ids() == list(range(5))


def test_a_stream_on_a_store_that_fails_now_and_then(
    spark: SparkSession, in_s3: InS3, tmp_path: Path, run_stream: Any
) -> None:
    landing = Landing(tmp_path / "landing")
    landing.land(3)
    in_s3.s3.arm(7, 0.03, (Fault.ERROR_500, Fault.LOST_500, Fault.SLOW_DOWN))
    try:
        run_stream(landing, in_s3)
    finally:
        in_s3.s3.disarm()
    landing.land(2)
    run_stream(landing, in_s3)
    assert in_s3.ids(spark) == in_s3.plain_ids() == landing.ids


def test_executors_without_the_library(spark: SparkSession, in_s3: InS3) -> None:
    """A task says what to install, and where."""

    def without(_: Any) -> Iterator[str]:
        from laketier.spi import ConfigError, Passthrough
        from laketier_localfile.place import place_of

        sys.modules["obstore"] = None  # type: ignore[assignment]
        try:
            place_of(f"s3://{BUCKET}/x/db/events", Passthrough({"region": REGION})).read("x")
        except ConfigError as error:
            yield str(error)
        finally:
            del sys.modules["obstore"]

    (told,) = spark.sparkContext.parallelize([1], 1).mapPartitions(without).collect()
    assert "need the library obstore" in told
    assert "for the driver and for every executor" in told
