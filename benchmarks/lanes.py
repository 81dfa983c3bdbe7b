"""Each lane into each format, beside Spark's own Parquet writer and the bare libraries, from the same Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks import lakes, raw
from benchmarks.arrow import MAX_BYTES, UNBOUNDED
from benchmarks.dataset import files_of
from benchmarks.measure import Case, interleaved
from benchmarks.report import Section, compared
from laketier.connectors import ParquetFolder
from laketier.spark.lanes import tier, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "Spark's Parquet writer, zstd"
EMPTY = "a Spark job of 4 empty Python tasks"
RAW_PLAIN = "raw pyarrow, zstd, its defaults"
RAW_TUNED = "raw pyarrow, zstd, our encodings"
RAW_LANCE = "raw pylance"


def run(
    spark: SparkSession, formats: list[str], source: Path, repetitions: int, work: Path, say: Callable[[str], None]
) -> Section:
    """CPU-seconds of everything that runs, and wall time."""
    rows = sum(pq.read_metadata(path).num_rows for path in files_of(source))
    with raw.pool(source) as pool:
        cases = [Case(SPARK, _spark_parquet(spark, source), _counted(raw.count_parquet, rows))]
        cases += [
            Case(EMPTY, lambda _: spark.sparkContext.parallelize(range(4), 4).map(abs).collect()),
            Case(RAW_PLAIN, lambda folder: pool.parquet(folder, tuned=False), _counted(raw.count_parquet, rows)),
            Case(RAW_TUNED, lambda folder: pool.parquet(folder, tuned=True), _counted(raw.count_parquet, rows)),
            Case(RAW_LANCE, pool.lance, _counted(raw.count_lance, rows)),
        ]
        for name in formats:
            cases += _lanes(spark, name, source, rows)
        section = compared(
            f"Batch: {rows:,} rows x 5 columns from Parquet, {spark.sparkContext.defaultParallelism} cores",
            interleaved(cases, work, repetitions, say),
            {"of Spark": SPARK, "of raw Parquet": RAW_TUNED, "of raw Lance": RAW_LANCE},
        )
    section.notes += [
        "CPU-seconds of the JVM, its Python workers and our processes; ratios are of CPU-seconds, medians.",
        f"split: tier(); DataFrame: write(), by mapInArrow; data source: df.write, {MAX_BYTES}={UNBOUNDED} being set.",
        "Aims: split <= 0.65 of Spark and <= 1.10 of raw; DataFrame <= 0.90 of Spark.",
    ]
    return section


def _lanes(spark: SparkSession, name: str, source: Path, rows: int) -> list[Case]:
    def options(folder: Path) -> dict[str, Any]:
        return lakes.options(name, folder, pipeline="bench", epoch=0)

    def split(folder: Path) -> None:
        tier(spark, ParquetFolder(str(source)), options(folder))

    def dataframe(folder: Path) -> None:
        write(spark.read.parquet(str(source)), options(folder))

    def data_source(folder: Path) -> None:
        spark.conf.set(MAX_BYTES, UNBOUNDED)
        try:
            frame = spark.read.parquet(str(source))
            frame.write.format("laketier").options(**options(folder)).mode("append").save()
        finally:
            spark.conf.unset(MAX_BYTES)

    def check(folder: Path) -> None:
        lakes.expect_rows(name, folder, rows)

    return [
        Case(f"{name}: split", split, check),
        Case(f"{name}: DataFrame", dataframe, check),
        Case(f"{name}: data source", data_source, check),
    ]


def _spark_parquet(spark: SparkSession, source: Path) -> Callable[[Path], None]:
    def run_once(folder: Path) -> None:
        frame = spark.read.parquet(str(source))
        frame.write.option("compression", "zstd").mode("overwrite").parquet(str(folder / "spark"))

    return run_once


def _counted(count: Callable[[Path], int], rows: int) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        found = count(folder)
        if found != rows:
            raise AssertionError(f"{found} rows were written instead of {rows}")

    return check
