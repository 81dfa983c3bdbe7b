"""`laketier.spark.get_or_create` changes what it says, and nothing else."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from laketier.spark import builder, get_or_create

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "cluster.md"
ROW = re.compile(r"^\| `(spark\.[\w.]+)` \| ", re.MULTILINE)


def test_the_page_lists_each_setting() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("`laketier.spark.get_or_create` does")[2].partition("\n## ")[0]
    assert sorted(ROW.findall(section)) == sorted(builder()._options)


def test_the_docstring_and_the_page_name_each_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    monkeypatch.setattr(os, "environ", kept.copy())
    builder()
    added = set(os.environ) - set(kept)
    assert added == {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"}
    assert all(name in (builder.__doc__ or "") and f"`{name}`" in PAGE.read_text(encoding="utf-8") for name in added)


def test_a_running_session_stays_as_it_is(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    environment, before = dict(os.environ), settings(spark)
    try:
        assert get_or_create(log_level="OFF") is spark
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(get_or_create).result() is spark
        assert (dict(os.environ), settings(spark)) == (environment, before)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def settings(spark: SparkSession) -> dict[str, Any]:
    level = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    return {**spark.conf.getAll, "log level": level}
