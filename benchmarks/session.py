"""The Spark that the comparisons run on."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
JFR_SETTINGS = "profile"


@contextmanager
def spark_session(
    work: Path,
    profile: Path | None = None,
    jars: str | None = None,
    *,
    master: str = f"local[{CORES}]",
    more: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """local[2] unless said; with ``profile``, Java Flight Recorder writes there what the JVM did. ``jars``: a folder of
    more. ``more``: further settings."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    java = f"-Dderby.system.home={work}"
    if profile is not None:
        java += f" -XX:StartFlightRecording=filename={profile},settings={JFR_SETTINGS}"
    builder = (
        SparkSession.builder.master(master)
        .appName("laketier benchmarks")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.local.dir", str(work / "spark-local"))
        .config("spark.sql.warehouse.dir", str(work / "spark-warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", CORES)
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.streaming.numRecentProgressUpdates", 10_000)
    )
    if jars is not None:
        builder = builder.config("spark.driver.extraClassPath", f"{jars}/*")
    for key, value in (more or {}).items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        # Lance, once loaded, warns of every fork. This one becomes the JVM at once.
        warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
