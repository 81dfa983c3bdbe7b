"""One table for each name, wherever the process went after its session began."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import laketier.spark
from laketier.spark.running_query import working_folder


def test_both_entrances_mean_the_same_table_after_chdir(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    base = working_folder(spark)
    assert base is not None
    relative = str(Path("/", *[".."] * len(Path(base).parts)).relative_to("/") / tmp_path.relative_to("/") / "lake")
    keys = {"lake.format": "localfile", "lake.warehouse": relative, "lake.table": "db.t"}
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    with caplog.at_level(logging.WARNING, logger="laketier"):
        laketier.spark.write(spark.range(2), keys)
    spark.range(3).write.format("laketier").options(**keys).mode("append").save()
    assert not any(here.rglob("*"))
    assert laketier.spark.read(spark, keys).count() == 5
    assert spark.read.format("laketier").options(**keys).load().count() == 5
    assert laketier.spark.read(spark, keys | {"lake.warehouse": str(tmp_path / "lake")}).count() == 5
    said = [record.message for record in caplog.records if "relative" in record.message]
    assert len(said) == 1
    assert str(tmp_path / "lake") in said[0]
    assert str(here) in said[0]
