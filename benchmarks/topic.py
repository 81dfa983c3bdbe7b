"""``python -m benchmarks.topic``: a topic of a real Kafka into each format, end to end, beside Spark's own Kafka source
with its Parquet sink, and beside a plain consumer with pyarrow.

Needs folders with the jars of Apache Kafka (``KAFKA_LIBS``) and, for the comparison with Spark, of its Kafka
connector for this very pyspark (``SPARK_KAFKA_LIBS``). The broker's work is not counted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, TopicPartition
from rich.console import Console

from benchmarks import lakes
from benchmarks.kafka import COLUMNS, SCHEMA, fill
from benchmarks.measure import Case, Measured, interleaved, median
from benchmarks.report import Section, save, show
from benchmarks.session import spark_session
from laketier.registry import configure, open_log_source
from laketier.rounds import LogRound, LogRoundSettings
from laketier.rounds.log_engine import LocalEngine, LogEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 8
TOPIC = "rows"


def tier(engine: LogEngine, bootstrap: str, name: str, folder: Path) -> None:
    """One round of the whole topic."""
    log = open_log_source("kafka", {"bootstrap-servers": bootstrap}, name="bench", origin="benchmarks").open(
        TOPIC, {"value-format": "json", **{f"columns.{column}": kind for column, kind in COLUMNS.items()}}
    )
    config = configure(lakes.options(name, folder, pipeline="bench"))
    one = LogRound(log, config, LogRoundSettings())
    one.finish(list(engine.run(one.plan())))


def spark_alone(spark: SparkSession, bootstrap: str, folder: Path) -> None:
    """What a Spark user writes without us."""
    from pyspark.sql import functions as f

    kinds = {"int64": "bigint", "float64": "double", "string": "string", "timestamp[us, UTC]": "timestamp"}
    schema = ", ".join(f"{name} {kinds[kind]}" for name, kind in COLUMNS.items())
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", TOPIC).load()
    rows = read.select(f.from_json(f.col("value").cast("string"), schema).alias("row")).select("row.*")
    rows.write.option("compression", "zstd").parquet(str(folder / "parquet"))


def plain(bootstrap: str, folder: Path) -> None:
    """One process with a consumer, `json.loads` and pyarrow."""
    import json

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "plain", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    ended = 0
    target = folder / "parquet"
    target.mkdir()
    typed = SCHEMA.set(1, pa.field("at", pa.timestamp("us", "UTC")))
    with pq.ParquetWriter(target / "rows.parquet", typed, compression="zstd") as writer:
        found: list[dict[str, Any]] = []
        while ended < PARTITIONS:
            for message in consumer.consume(10_000, 0.1):
                if message.error() is None:
                    found.append(json.loads(message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended += 1
            if len(found) >= 100_000 or ended == PARTITIONS:
                rows = pa.Table.from_pylist(found, schema=SCHEMA)
                at = pc.cast(rows["at"], pa.timestamp("us", "UTC"))
                writer.write_table(rows.set_column(1, "at", at))
                found = []
    consumer.close()


def expect(rows: int, folder: Path) -> None:
    """Raises unless the Parquet files hold ``rows`` rows."""
    if (count := ds.dataset(folder / "parquet").count_rows()) != rows:
        raise AssertionError(f"{count:,} rows were written instead of {rows:,}")


def compared(cases: dict[str, Measured], rows: int, size: int) -> Section:
    """Rates per core, and the CPU of each beside Spark's."""
    section = Section(f"{rows:,} rows, {size / 2**20:,.0f} MiB of JSON in {PARTITIONS} partitions, to a table")
    middle = {name: median(case.samples) for name, case in cases.items()}
    spark = middle.get("spark: kafka to parquet")
    for name, sample in middle.items():
        row = {
            "case": name,
            "cpu_s": round(sample.cpu, 1),
            "wall_s": round(sample.wall, 1),
            "rows/CPU-s": round(rows / sample.cpu),
            "MiB/CPU-s": round(size / 2**20 / sample.cpu, 1),
            "rows/s": round(rows / sample.wall),
            "MB": round(cases[name].bytes / 1e6, 1),
        }
        if spark is not None:
            row["CPU of Spark's"] = round(sample.cpu / spark.cpu, 2)
        section.rows.append(row)
    return section


def main() -> None:
    """Fill the topic, move it in each way in turn, print medians and ratios."""
    from laketier_verification.kafka_server import KafkaServer

    parser = argparse.ArgumentParser(prog="python -m benchmarks.topic", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--formats", nargs="*")
    parser.add_argument("--work", type=Path, default=Path("build/bench"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    work: Path = arguments.work.resolve()
    progress = Console(stderr=True)

    def say(text: str) -> None:
        progress.print(f"  {text}", style="dim", highlight=False)

    broker = work / f"kafka-{time.time_ns()}"
    broker.mkdir(parents=True)
    server = KafkaServer(os.environ["KAFKA_LIBS"], broker)
    try:
        server.create(TOPIC, PARTITIONS)
        say(f"{arguments.rows:,} records to {server.bootstrap}")
        size = fill(server.bootstrap, TOPIC, arguments.rows, PARTITIONS)
        with spark_session(work, jars=os.environ.get("SPARK_KAFKA_LIBS")) as spark:
            from laketier.spark.log_engine import SparkLogEngine

            engines: dict[str, LogEngine] = {"spark": SparkLogEngine(spark), "threads": LocalEngine()}
            cases = [
                Case(
                    f"laketier: {name}" + (", no Spark" if kind == "threads" else ""),
                    partial(tier, engine, server.bootstrap, name),
                    partial(lakes.expect_rows, name, rows=arguments.rows),
                )
                for name in lakes.installed(arguments.formats)
                for kind, engine in engines.items()
                if kind == "spark" or name == "localfile"
            ]
            check: Callable[[Path], None] = partial(expect, arguments.rows)
            if "SPARK_KAFKA_LIBS" in os.environ:
                cases.append(Case("spark: kafka to parquet", partial(spark_alone, spark, server.bootstrap), check))
            cases.append(Case("consumer, json.loads, pyarrow", partial(plain, server.bootstrap), check))
            taken = interleaved(cases, work / "scratch", arguments.repetitions, say)
    finally:
        server.kill()
    section = compared(dict(taken), arguments.rows, size)
    show(section, Console(width=None if Console().is_terminal else 150))
    if arguments.json:
        save([section], {"rows": arguments.rows, "repetitions": arguments.repetitions}, arguments.json)


if __name__ == "__main__":
    main()
