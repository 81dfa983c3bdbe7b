"""A client of Spark Connect, with a server in the same process. Arguments as JSON; the answer is the last line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import laketier.spark
from laketier.spi import FeatureNotSupported


def main() -> None:
    folder = Path(sys.argv[1])
    spark = laketier.spark.get_or_create()
    answer = {"session": type(spark).__module__, "again": laketier.spark.get_or_create() is spark}

    sink = {"lake.format": "delta", "lake.warehouse": str(folder / "lake"), "lake.pipeline": "p"}
    batch = sink | {"lake.table": "db.batch"}
    rows = spark.range(10)
    answer["epochs"] = [laketier.spark.write(rows, batch | {"lake.epoch": str(n)}).outcome.value for n in (0, 1, 1)]
    answer["read"] = laketier.spark.read(spark, batch).count()
    try:
        laketier.spark.tier(spark, str(folder), batch)
    except FeatureNotSupported as refused:
        answer["tier"] = str(refused)

    each, landing = sink | {"lake.table": "db.each"}, str(folder / "landing")
    files = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(landing)
    answer["stream"] = _ended(
        laketier.spark.stream(
            files, sink | {"lake.table": "db.stream"}, checkpoint=str(folder / "stream"), trigger={"availableNow": True}
        )
    )

    def twice(df: Any, number: int) -> None:
        import laketier.spark

        for _ in range(2):
            laketier.spark.write_batch(df, number, each, checkpoint=str(folder / "each"))

    writer = files.writeStream.foreachBatch(twice).option("checkpointLocation", str(folder / "each"))
    answer["each"] = _ended(writer.trigger(availableNow=True).start())
    print(json.dumps(answer))


def _ended(query: Any) -> bool:
    return bool(laketier.spark.await_termination(query, 240))


if __name__ == "__main__":
    main()
