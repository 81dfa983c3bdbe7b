"""Reading tables into Spark, beside Spark's own Parquet reader over the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import lakes
from benchmarks.measure import Case, interleaved, own_folder
from benchmarks.report import Section, compared
from laketier.connectors import ParquetFolder
from laketier.spark.lanes import tier
from laketier.spark.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMN = "amount"


def run(
    spark: SparkSession, formats: list[str], source: Path, repetitions: int, work: Path, say: Callable[[str], None]
) -> list[Section]:
    """All columns into noop, and one column summed."""
    with own_folder(work) as folder:
        readers: dict[str, Callable[[list[str] | None], DataFrame]] = {
            "Spark's Parquet reader": lambda columns: spark.read.parquet(str(source)).select(*(columns or ["*"]))
        }
        for name in formats:
            say(f"preparing {name}")
            options = lakes.options(name, folder / name)
            tier(spark, ParquetFolder(str(source)), options)
            readers[f"{name}: laketier.spark.read"] = _function(spark, options)
            readers[f"{name}: data source"] = _data_source(spark, options)
        baseline = {"of Spark": "Spark's Parquet reader"}
        expected = _total(spark.read.parquet(str(source)))
        whole = [Case(name, _drain(make), _expecting(expected, make, None)) for name, make in readers.items()]
        summed = [Case(name, _sum(make), _expecting(expected, make, [COLUMN])) for name, make in readers.items()]
        return [
            compared("Read: all columns into noop", interleaved(whole, work, repetitions, say), baseline),
            compared("Read: the sum of one column", interleaved(summed, work, repetitions, say), baseline),
        ]


def _function(spark: SparkSession, options: dict[str, str]) -> Callable[[list[str] | None], DataFrame]:
    return lambda columns: read(spark, options, columns=columns)


def _data_source(spark: SparkSession, options: dict[str, str]) -> Callable[[list[str] | None], DataFrame]:
    def make(columns: list[str] | None) -> DataFrame:
        return spark.read.format("laketier").options(**options).load().select(*(columns or ["*"]))

    return make


def _drain(make: Callable[[list[str] | None], DataFrame]) -> Callable[[Path], None]:
    return lambda _: make(None).write.format("noop").mode("overwrite").save()


def _sum(make: Callable[[list[str] | None], DataFrame]) -> Callable[[Path], object]:
    return lambda _: _total(make([COLUMN]))


def _total(frame: DataFrame) -> tuple[int, float]:
    (row,) = frame.agg({"*": "count", COLUMN: "sum"}).collect()
    return row["count(1)"], row[f"sum({COLUMN})"]


def _expecting(
    expected: tuple[int, float], make: Callable[[list[str] | None], DataFrame], columns: list[str] | None
) -> Callable[[Path], None]:
    def check(_: Path) -> None:
        rows, total = _total(make(columns))
        if rows != expected[0] or not math.isclose(total, expected[1]):
            raise AssertionError(f"read {rows} rows with a sum of {total} instead of {expected}")

    return check
