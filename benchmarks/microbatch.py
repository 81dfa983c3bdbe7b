"""Streams of small micro-batches: what each epoch costs, beside Spark's Parquet sink."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import lakes
from benchmarks.measure import TreeCpu, own_folder
from benchmarks.report import Section
from laketier.spark.foreach_batch import write_batch
from laketier.spark.streaming import stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS = 1_000
SKIPPED = 5
VISITS = 2

Start = Callable[["DataFrame", Path], "StreamingQuery"]


def run(spark: SparkSession, formats: list[str], epochs: int, work: Path, say: Callable[[str], None]) -> Section:
    """Every sink takes ``epochs`` batches twice, in turn; the first few of each visit warm up."""
    sinks: dict[str, Start] = {"noop": _noop, "Spark's Parquet sink": _parquet}
    sinks |= {f"laketier {name}": _laketier(name) for name in formats}
    sinks |= {f"laketier {name}, foreachBatch": _foreach(name) for name in formats}
    taken: dict[str, list[dict[str, int]]] = {name: [] for name in sinks}
    cpu: dict[str, float] = dict.fromkeys(sinks, 0.0)
    batches: dict[str, int] = dict.fromkeys(sinks, 0)
    # Stopping a query fails the batch that is under way, and Spark prints it, also later. Real failures are raised.
    spark.sparkContext.setLogLevel("OFF")
    for visit in range(VISITS):
        for name in sinks if visit % 2 == 0 else reversed(sinks):
            say(f"{visit + 1}/{VISITS}: {name}, {epochs} epochs")
            with own_folder(work) as folder:
                before = TreeCpu()
                progress = _follow(sinks[name](_source(spark), folder), epochs)
                cpu[name] += before.used()
                batches[name] += len(progress)
                taken[name] += [p["durationMs"] for p in progress if p["batchId"] >= SKIPPED]
                if name.startswith("laketier "):
                    _check(name.removeprefix("laketier ").removesuffix(", foreachBatch"), folder, progress)
    return _section(taken, cpu, batches, epochs)


def _section(
    taken: dict[str, list[dict[str, int]]], cpu: dict[str, float], batches: dict[str, int], epochs: int
) -> Section:
    section = Section(f"Micro-batches of {ROWS:,} rows ({VISITS} x {epochs} epochs, median)")
    baseline = statistics.median(d["addBatch"] for d in taken["Spark's Parquet sink"])
    for name, durations in taken.items():
        added = [d["addBatch"] for d in durations]
        section.rows.append(
            {
                "sink": name,
                "addBatch ms": round(statistics.median(added), 1),
                "of Spark": round(statistics.median(added) / baseline, 2),
                "p95 ms": round(statistics.quantiles(added, n=20)[-1], 1),
                "trigger ms": round(statistics.median(d["triggerExecution"] for d in durations), 1),
                "cpu ms per epoch": round(cpu[name] / batches[name] * 1000, 1),
            }
        )
    section.notes.append(f"The first {SKIPPED} epochs of each visit are left out of the times, not of the CPU.")
    return section


def _source(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()


def _noop(frame: DataFrame, folder: Path) -> StreamingQuery:
    return frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()


def _parquet(frame: DataFrame, folder: Path) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.start(str(folder / "table"))


def _laketier(name: str) -> Start:
    def start(frame: DataFrame, folder: Path) -> StreamingQuery:
        options = lakes.options(name, folder, pipeline="bench")
        return stream(frame, options, checkpoint=str(folder / "checkpoint"))

    return start


def _foreach(name: str) -> Start:
    def start(frame: DataFrame, folder: Path) -> StreamingQuery:
        options = lakes.options(name, folder, pipeline="bench")
        writer = frame.writeStream.foreachBatch(lambda df, batch_id: write_batch(df, batch_id, options))
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    return start


def _follow(query: StreamingQuery, epochs: int) -> list[dict[str, Any]]:
    """Let the query run ``epochs`` batches and stop it. Raises what the query raised."""
    while not query.awaitTermination(0.1):  # type: ignore[arg-type]
        progress = query.lastProgress
        if progress is not None and progress["batchId"] >= epochs - 1:
            break
    query.stop()
    return [dict(p) for p in query.recentProgress if p["numInputRows"]][:epochs]


def _check(name: str, folder: Path, progress: list[dict[str, Any]]) -> None:
    """Batches that were still running when the query stopped may be there as well, but only whole ones."""
    rows = lakes.rows_in(name, folder, column="value")
    if rows % ROWS or rows < ROWS * len(progress):
        raise AssertionError(f"{name}: {rows} rows after {len(progress)} batches of {ROWS}")
