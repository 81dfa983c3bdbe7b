"""What Spark's bound on the bytes of an Arrow batch costs: one setting, JVM → Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.measure import Case, interleaved
from benchmarks.report import Section, compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNBOUNDED = str(2**31 - 1)


def run(spark: SparkSession, source: Path, repetitions: int, work: Path, say: Callable[[str], None]) -> Section:
    """Count the rows of ``source`` in Python, under the default setting and without the bound."""
    rows = spark.read.parquet(str(source)).count()
    default = spark.conf.get(MAX_BYTES)

    def drain(limit: str | None) -> Callable[[Path], None]:
        def run_once(_: Path) -> None:
            if limit is not None:
                spark.conf.set(MAX_BYTES, limit)
            try:
                parts = spark.read.parquet(str(source)).mapInArrow(_count, "rows long").collect()
            finally:
                spark.conf.unset(MAX_BYTES)
            if sum(part.rows for part in parts) != rows:
                raise AssertionError(f"not all {rows} rows arrived")

        return run_once

    def scan(_: Path) -> None:
        spark.read.parquet(str(source)).write.format("noop").mode("overwrite").save()

    names = [f"mapInArrow, {default} (default)", f"mapInArrow, {UNBOUNDED}"]
    cases = [Case("Spark reads, nothing else", scan), Case(names[0], drain(None)), Case(names[1], drain(UNBOUNDED))]
    section = compared(
        f"{MAX_BYTES}: {rows:,} rows into Python", interleaved(cases, work, repetitions, say), {"of default": names[0]}
    )
    section.notes.append("CPU-seconds of the JVM and its Python workers; ratios are of CPU-seconds.")
    return section


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})
