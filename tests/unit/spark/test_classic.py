"""What needs a SparkContext says so on Spark Connect, without a server: `tests/spark/test_connect.py` has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import laketier.spark
from laketier.connectors import ParquetFolder
from laketier.spark.log_engine import SparkLogEngine
from laketier.spi import FeatureNotSupported

Remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
TABLE = {"lake.format": "localfile", "lake.table": "db.t"}


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (lambda spark, to: laketier.spark.tier(spark, ParquetFolder("/none"), to), "does not support `tier`, because"),
        (lambda spark, to: laketier.spark.create_index(spark, to, "text", "inverted"), "`laketier index create`"),
        (lambda spark, to: laketier.spark.maintain_indexes(spark, to, tasks=2), "a build of an index"),
        (lambda spark, _: SparkLogEngine(spark), "a service"),
    ],
)
def test_what_needs_a_context_is_refused_by_name(work: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(FeatureNotSupported, match=r"^Spark Connect does not support") as refused:
        work(Remote(), TABLE | {"lake.warehouse": str(tmp_path)})
    assert says in str(refused.value)
    assert list(tmp_path.iterdir()) == []
