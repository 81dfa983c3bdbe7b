"""The process that `jvm_spark` talks to, a line of JSON each way. Runs with another pyspark, and without laketier."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"
"""For all sessions, as no session can have its own; other formats do not mind."""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer

    from pyspark.sql import SparkSession

    root = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", os.environ["JARS"])
        .config("spark.ui.enabled", "false")
        .config("spark.sql.extensions", EXTENSIONS if "delta-spark" in os.environ["JARS"] else "")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", os.path.abspath("spark-warehouse"))
        .getOrCreate()
    )
    spark = root
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result: Any = None
            if "session" in request:
                spark = root.newSession()
                for key, value in request["session"].items():
                    spark.conf.set(key, value)
            elif "sql" in request:
                result = [row.asDict(recursive=True) for row in spark.sql(request["sql"]).collect()]
            else:
                names = {"spark": spark, **request["given"]}
                exec(request["python"], names)  # noqa: S102 - a test's own lines
                result = names.get("result")
            answer = {"result": result}
        except Exception as error:  # noqa: BLE001 - all of it is the test's to judge
            answer = {"error": f"{type(error).__name__}: {error}"[:8000]}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()
    root.stop()


if __name__ == "__main__":
    main()
