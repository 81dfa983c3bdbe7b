"""A driver of its own, to be killed or to fail: streams landing zones into tables, one after another. Arguments
as JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main() -> None:
    settings = json.loads(sys.argv[1])
    # Each task gets a second attempt.
    spark = (
        SparkSession.builder.master("local[1,2]")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for each in settings:
        Path(each["outcome"]).write_text(_stream(spark, each), encoding="utf-8")
    spark.stop()


def _stream(spark: SparkSession, settings: dict[str, Any]) -> str:
    """How it ended."""
    reader = spark.readStream.schema(settings["columns"]).option("maxFilesPerTrigger", 1)
    df = reader.parquet(settings["landing"])
    if settings["fail_first_attempt"]:
        df = df.mapInArrow(_failing_once, df.schema)
    writer = df.writeStream.format("laketier").options(**settings["options"]).trigger(availableNow=True)
    try:
        writer.start().awaitTermination()
    except PySparkException as error:
        return str(error)
    return "ended"


def _failing_once(batches):  # type: ignore[no-untyped-def]
    from pyspark import TaskContext

    for batch in batches:
        yield batch
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the first attempt fails after its rows were handed over")


if __name__ == "__main__":
    main()
