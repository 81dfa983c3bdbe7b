"""The demo's Spark driver, a process of its own so that it can be killed: ``python -m laketier.cli.demo.driver``.

Reads its orders as JSON from the first argument and reports each batch as one JSON line on standard output.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from laketier.spark.session import builder

_POLL_SECONDS = 0.2


def main(orders: dict[str, Any]) -> None:
    """Stream every input into every format; stop when all of it has been read (``drain``), else run on."""
    spark = (
        builder(app_name="laketier demo")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 2)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    _report({"event": "started"})
    queries = {}
    for dataset, landing in orders["inputs"].items():
        schema = spark.read.parquet(orders["samples"][dataset]).schema
        for lake_format in orders["formats"]:
            name = f"{dataset}-{lake_format}"
            stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(landing)
            writer = (
                stream.writeStream.format("laketier")
                .option("lake.format", lake_format)
                .option("lake.warehouse", f"{orders['warehouse']}/{lake_format}")
                .option("lake.table", f"demo.{dataset}")
                .option("lake.pipeline", f"demo-{dataset}")
                .option("checkpointLocation", f"{orders['checkpoints']}/{name}")
                .queryName(name)
            )
            if orders["drain"]:
                writer = writer.trigger(availableNow=True)
            queries[name] = writer.start()
    seen: dict[str, int] = {}
    while queries:
        for name, query in list(queries.items()):
            active = query.isActive
            for progress in query.recentProgress:
                if progress["batchId"] > seen.get(name, -1) and progress["numInputRows"]:
                    seen[name] = progress["batchId"]
                    milliseconds = progress["durationMs"].get("triggerExecution", 0)
                    _report({"event": "batch", "query": name, "epoch": progress["batchId"],
                             "rows": progress["numInputRows"], "ms": milliseconds})  # fmt: skip
            if not active:
                error = query.exception()
                if error is not None:
                    _report({"event": "failed", "query": name, "error": str(error)})
                    sys.exit(1)
                _report({"event": "finished", "query": name})
                del queries[name]
        time.sleep(_POLL_SECONDS)


def _report(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
