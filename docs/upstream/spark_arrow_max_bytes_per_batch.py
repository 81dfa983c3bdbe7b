"""What spark.sql.execution.arrow.maxBytesPerBatch costs, with nothing but pyspark.

    pip install "pyspark>=4.1" pyarrow "pandas<3"
    python spark_arrow_max_bytes_per_batch.py [ROWS]

Sends ROWS rows of five columns from a Parquet file through the JVM to Python, where they are only counted: under the
default bound on the bytes of an Arrow batch, and with the check switched off, in turn. Both deliver the same batches.
"""

# ruff: noqa: T201 - it prints its result

import os
import statistics
import sys
import tempfile
import time

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
OFF = str(2**31 - 1)  # the only value for which the check is skipped
REPETITIONS = 5


def count(batches):
    rows = number = largest = 0
    for batch in batches:
        rows += batch.num_rows
        number += 1
        largest = max(largest, batch.nbytes)
    yield pa.RecordBatch.from_pydict({"rows": [rows], "batches": [number], "largest": [largest]})


def main(rows, folder):
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = builder.config("spark.ui.showConsoleProgress", False).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(0, rows, 1, 2).select(
        "id",
        (f.col("id") % 1000).cast("int").alias("k"),
        (f.col("id") * 0.5).alias("v"),
        f.timestamp_micros(f.col("id")).alias("ts"),
        f.concat(f.lit("name-"), f.col("id") % 1000).alias("name"),
    ).write.mode("overwrite").parquet(folder)
    frame = spark.read.parquet(folder)
    default = spark.conf.get(SETTING)
    times = {default: [], OFF: []}
    batches = {}
    for repetition in range(REPETITIONS + 1):
        for value, taken in times.items():
            spark.conf.set(SETTING, value)
            started = time.perf_counter()
            parts = frame.mapInArrow(count, "rows long, batches long, largest long").collect()
            if repetition:  # the first one warms up
                taken.append(time.perf_counter() - started)
            assert sum(part.rows for part in parts) == rows
            batches[value] = sum(part.batches for part in parts), max(part.largest for part in parts)
    print(f"pyspark {spark.version}, {rows:,} rows, 5 columns, local[2], median of {REPETITIONS}")
    for value, taken in times.items():
        number, largest = batches[value]
        name = f"{value} (default)" if value == default else value
        print(f"  {name:22} {statistics.median(taken):6.2f} s   {number:,} batches, largest {largest:,} bytes")
    print(f"  ratio {statistics.median(times[default]) / statistics.median(times[OFF]):.1f}")
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 8_000_000, os.path.join(place, "input"))
