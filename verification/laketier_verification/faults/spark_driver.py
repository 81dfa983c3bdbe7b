"""A Spark driver that runs lives on request, so that one start of Spark serves many:
``python -m laketier_verification.faults.spark_driver``.

Failpoints reach every process of a life: this one by its environment, tasks and the data source's own processes by the
environment that Spark hands to Python functions when they are defined. So each life defines a data source of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from laketier.connectors import ParquetFolder
from laketier.kit import failpoints
from laketier.kit.failpoints import VARIABLE, observed
from laketier.spark import builder, tier, write
from laketier.spark.data_source import LakeDataSource
from laketier.spi import Refused
from laketier_verification.faults import work
from laketier_verification.faults.bare import ending
from laketier_verification.faults.progress import Progress, follow

_REFUSALS = [kind.__name__ for kind in Refused.__subclasses__()]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = (
        builder(app_name="laketier faults", master=os.environ.get("FAULTS_MASTER", "local[2,4]"))
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", 2)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    answers.write(json.dumps({"ready": spark.version}) + "\n")
    for number, line in enumerate(sys.stdin):
        order = json.loads(line)
        answer = _together(spark, order) if "together" in order else _live(spark, order, number)
        answers.write(json.dumps(answer) + "\n")
    spark.stop()


def _live(spark: SparkSession, request: dict[str, Any], number: int) -> dict[str, Any]:
    _arm(spark, request["failpoints"], number)
    try:
        if request["lane"] == "stream":
            _stream(spark, request, number)
        else:
            _follow(spark, request)
    except PySparkException as error:
        return _of_spark(error)
    except Exception as error:  # noqa: BLE001 - the parent decides what it means
        return ending(error)
    return {"outcome": "finished"}


def _together(spark: SparkSession, order: dict[str, Any]) -> dict[str, Any]:
    """All lives of the order side by side, each in a thread. When each of them stands at the failpoint ``at``, in epoch
    1, this process kills itself."""
    _arm(spark, "", 0)
    point = order["at"]
    arrived: dict[int, int] = {}
    lock = threading.Lock()
    never = threading.Event()
    results: list[dict[str, Any]] = []

    def stop(name: str) -> None:
        if name != point:
            return
        me = threading.get_ident()
        with lock:
            arrived[me] = arrived.get(me, 0) + 1
            everyone = sum(1 for times in arrived.values() if times == 2) == len(order["together"])
            mine = arrived[me]
        if everyone:
            os.kill(os.getpid(), signal.SIGKILL)
        if mine == 2:
            never.wait()

    def run(request: dict[str, Any]) -> None:
        try:
            _follow(spark, request)
            results.append({"outcome": "finished"})
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            results.append(ending(error))

    with observed(stop if point else lambda _: None):
        threads = [threading.Thread(target=run, args=(request,), daemon=True) for request in order["together"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return {"outcome": "finished", "results": results}


def _arm(spark: SparkSession, text: str, number: int) -> None:
    """A text that no life had before: workers count their hits by it."""
    text = f"{text};" if text else ""
    os.environ[VARIABLE] = f"{text}life.{number}=error"
    spark.sparkContext.environment[VARIABLE] = os.environ[VARIABLE]
    failpoints._parsed = ("", {})


def _options(request: dict[str, Any]) -> dict[str, str]:
    keys = {"format": request["format"], "warehouse": request["warehouse"], "table": work.TABLE}
    return {f"lake.{key}": value for key, value in (keys | {"pipeline": work.PIPELINE}).items()}


def _follow(spark: SparkSession, request: dict[str, Any]) -> None:
    """The progress log of the bare lane, here in the part of whoever schedules batches."""
    progress = Progress(Path(request["progress"]))

    def run_epoch(epoch: int, _: str) -> None:
        options = _options(request) | {"lake.epoch": str(epoch)}
        folder = f"{request['landing']}/{epoch:04}"
        if request["lane"] == "split":
            tier(spark, ParquetFolder(folder), options, tasks=1)
        else:
            df = spark.read.schema(work.COLUMNS).parquet(folder)
            write(df.repartition(request["tasks"]), options)

    follow(progress, request["epochs"], lambda epoch: f"folder {epoch}", run_epoch)


def _stream(spark: SparkSession, request: dict[str, Any], number: int) -> None:
    name = f"armed{number}"
    spark.dataSource.register(type("Armed", (LakeDataSource,), {"name": classmethod(lambda _: name)}))
    reader = spark.readStream.schema(work.COLUMNS).option("maxFilesPerTrigger", 1)
    df = reader.parquet(f"{request['landing']}/*")
    options = _options(request) | {"checkpointLocation": request["progress"]}
    query = df.writeStream.format(name).options(**options).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _of_spark(error: PySparkException) -> dict[str, Any]:
    """Refusals come as text, out of another process."""
    text = str(error)
    refusal = next((name for name in _REFUSALS if f"laketier.spi.errors.{name}" in text), None)
    outcome = "failed" if refusal is None else "refused"
    return {"outcome": outcome, "error": refusal or type(error).__name__, "message": text[-3000:]}


if __name__ == "__main__":
    main()
