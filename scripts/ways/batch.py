"""A batch of Spark into a Delta table."""

import tempfile
from pathlib import Path

import laketier.spark

with tempfile.TemporaryDirectory() as folder:
    spark = laketier.spark.get_or_create(log_level="OFF", master="local[2]")
    keys = {"lake.format": "delta", "lake.warehouse": str(Path(folder, "lake"))}
    spark.range(1000).write.format("laketier").options(**keys).mode("append").save("db.t")
    spark.stop()
