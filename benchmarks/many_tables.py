"""``python -m benchmarks.many_tables``: hundreds of small tables with a freshness of a minute, by one worker on two
cores: how many are fresh, and what that costs, beside a Spark job for each table's round.

The broker is the mock that librdkafka carries; its work and the producer's are not counted. The other way has the
same worker, the same leases and the same rounds; only its jobs hold one table each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import yaml
from confluent_kafka import Producer
from rich.console import Console

from benchmarks.report import Row, Section, save, show
from laketier.rounds import LogAnswer, LogTask
from laketier.rounds.log_engine import LogEngine

if TYPE_CHECKING:
    from laketier.service.state import TableStatus

FORMATS = ("delta", "iceberg", "lance", "localfile")
WAYS = {"shared": "laketier: many tables in one job", "per-table": "a Spark job for each table", "local": "threads"}
_SAMPLES_EVERY = 2.0


class JobPerTable(LogEngine):
    """A `LogEngine`: what one job would do for many tables, a job after the other does for one each."""

    def __init__(self, engine: LogEngine) -> None:
        self._engine = engine

    def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
        """See `LogEngine.run`."""
        for _, own in itertools.groupby(sorted(tasks, key=lambda task: task.table), key=lambda task: task.table):
            yield from self._engine.run(list(own))


def work(file: str, way: str) -> None:
    """The worker: what `laketier serve` does, with the engine of ``way``."""
    from laketier.config.service import load_service
    from laketier.rounds.log_engine import LocalEngine
    from laketier.service.state import StateStore
    from laketier.service.tables import ServiceTables
    from laketier.service.worker import TieringWorker, WorkerSettings

    described = load_service(file)
    engine: LogEngine
    if way == "local":
        engine = LocalEngine()
    else:
        from laketier.spark.log_engine import SparkLogEngine
        from laketier.spark.session import get_or_create

        engine = SparkLogEngine(get_or_create())
        if way == "per-table":
            engine = JobPerTable(engine)
    with StateStore.open(described.state, service=described.name) as store:
        tables = ServiceTables(described, store, origin=file)
        tables.discover()
        worker = TieringWorker(store, tables, engine, WorkerSettings(lease_seconds=described.lease))
        signal.signal(signal.SIGTERM, lambda _number, _frame: worker.stop())
        worker.run()
        tables.close()


def describe(folder: Path, bootstrap: str, freshness: int, formats: Sequence[str], *, kept: bool) -> Path:
    """The service file."""
    document = {
        "name": "many",
        "state": f"sqlite:///{folder}/state.db",
        "sources": {"events": {"type": "kafka", "options": {"bootstrap-servers": bootstrap}}},
        "defaults": {
            "freshness": f"{freshness} s",
            "target": "events.{table}",
            "read": {"value-format": "json", "columns": {"id": "int64", "text": "string"}},
        },
        "tables": [
            {
                "source": "events",
                "include": [f"{name}_*"],
                "sink": {
                    "lake.format": name,
                    "lake.warehouse": str(folder / "lake" / name),
                    "lake.metadata-cache": kept,
                },
            }
            for name in formats
        ],
        "discover-every": "60 s",
    }
    path = folder / "service.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


@dataclass
class Writing:
    """A few rows to each topic, all the time."""

    bootstrap: str
    topics: Sequence[str]
    rows_per_second: int
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until it is told to stop."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 100})
        draw = random.Random(11)
        number, pause = 0, 0.1
        while not self.over.wait(pause):
            for _ in range(int(self.rows_per_second * pause)):
                row = {"id": number, "text": f"event {number}"}
                producer.produce(draw.choice(self.topics), json.dumps(row).encode(), partition=0)
                number += 1
            producer.poll(0)
        producer.flush(30)


@dataclass
class Seen:
    """What was sampled of one way."""

    fresh: list[int] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    warm_up: float = 0.0
    rounds: int = 0
    rows: int = 0
    failing: int = 0
    cpu: float = 0.0
    seconds: float = 0.0


def tree(pid: int) -> tuple[dict[tuple[int, float], float], int]:
    """CPU-seconds of a process and all below it, each by itself, and the memory that they hold (RSS, summed)."""
    cpu, resident = {}, 0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            times = process.cpu_times()
            cpu[process.pid, process.create_time()] = times.user + times.system
            resident += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return cpu, resident


def observe(way: str, service: Path, log: Path, tables: int, freshness: int, seconds: float) -> Seen:
    """Run a worker: until each table has been tiered once, but no longer than ``seconds``; then sample."""
    from laketier.service.state import StateStore

    seen = Seen()
    command = [sys.executable, "-m", "benchmarks.many_tables", "--worker", way, "--service", str(service)]
    with (
        log.open("wb") as output,
        StateStore.open(f"sqlite:///{service.parent}/state.db", service="many") as store,
    ):
        worker = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            started = time.monotonic()
            while len(tiered(store.snapshot())) < tables and time.monotonic() - started < seconds:
                time.sleep(1)
                if worker.poll() is not None:
                    raise RuntimeError(f"the worker ended with {worker.returncode}, see {log}")
            seen.warm_up = time.monotonic() - started
            before, _ = tree(worker.pid)
            began, before_totals = time.monotonic(), totals(store.snapshot())
            while time.monotonic() - began < seconds:
                time.sleep(_SAMPLES_EVERY)
                now = time.time_ns() // 1_000_000
                ages = [(now - at) / 1000 for at in tiered(store.snapshot())]
                seen.fresh.append(sum(age <= freshness for age in ages))
                seen.ages.extend(ages)
                seen.resident.append(tree(worker.pid)[1])
            after, _ = tree(worker.pid)
            seen.seconds = time.monotonic() - began
            seen.cpu = sum(used - before.get(process, 0.0) for process, used in after.items())
            rounds, rows, seen.failing = totals(store.snapshot())
            seen.rounds, seen.rows = rounds - before_totals[0], rows - before_totals[1]
        finally:
            worker.kill()
            worker.wait()
    return seen


def tiered(statuses: Sequence[TableStatus]) -> list[int]:
    """When each table that ever was tiered was so last."""
    return [each.table.last_tiered_at for each in statuses if each.table.last_tiered_at is not None]


def totals(statuses: Sequence[TableStatus]) -> tuple[int, int, int]:
    """Rounds and rows so far, and how many tables fail now."""
    tables = [each.table for each in statuses]
    return (
        sum(each.rounds_total for each in tables),
        sum(each.rows_total for each in tables),
        sum(each.failures > 0 for each in tables),
    )


def row_of(way: str, seen: Seen, tables: int) -> Row:
    """A line of the table."""
    return {
        "way": WAYS[way],
        "first round of all, s": round(seen.warm_up),
        "fresh, median": f"{statistics.median(seen.fresh):.0f} of {tables}",
        "fresh, least": min(seen.fresh),
        "age s, median": round(statistics.median(seen.ages), 1),
        "age s, 99 %": round(statistics.quantiles(seen.ages, n=100)[-1], 1),
        "rounds/min": round(60 * seen.rounds / seen.seconds),
        "rows/s": round(seen.rows / seen.seconds),
        "failing": seen.failing,
        "cores": round(seen.cpu / seen.seconds, 2),
        "CPU-ms/round": round(1000 * seen.cpu / max(1, seen.rounds)),
        "RSS MB": round(max(seen.resident) / 1e6),
    }


def main() -> None:
    """Fill topics all the while, and let each way keep them tiered in turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--freshness", type=int, default=60, help="seconds")
    parser.add_argument("--seconds", type=float, default=180, help="each way is sampled for")
    parser.add_argument("--rows-per-second", type=int, default=2500, help="over all tables")
    parser.add_argument("--ways", nargs="*", choices=tuple(WAYS), default=["shared", "per-table"])
    parser.add_argument("--formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--not-kept", action="store_true", help="each way once more, without the metadata cache")
    parser.add_argument("--logs", type=Path, default=Path("build/bench/many_tables"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", choices=tuple(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--service", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.service, arguments.worker)
        return
    from laketier_kafka.mock_broker import KafkaBroker

    formats: list[str] = arguments.formats
    topics = [f"{formats[number % len(formats)]}_{number:04}" for number in range(arguments.tables)]
    section = Section(
        f"{arguments.tables} tables, {arguments.rows_per_second:,} rows/s over all, freshness {arguments.freshness} s, "
        f"{', '.join(formats)}"
    )
    arguments.logs.mkdir(parents=True, exist_ok=True)
    for way, kept in itertools.product(arguments.ways, (True, False) if arguments.not_kept else (True,)):
        # Each with a broker and a lake of its own, so that all begin with nothing.
        with tempfile.TemporaryDirectory(prefix="laketier-many-") as name, KafkaBroker() as broker:
            for topic in topics:
                broker.create_topic(topic, 1)
            writing = Writing(broker.bootstrap, topics, arguments.rows_per_second)
            producer = threading.Thread(target=writing.run, daemon=True)
            producer.start()
            try:
                service = describe(Path(name), broker.bootstrap, arguments.freshness, formats, kept=kept)
                log = arguments.logs / f"{way}{'' if kept else '-not-kept'}.log"
                seen = observe(way, service, log, arguments.tables, arguments.freshness, arguments.seconds)
            finally:
                writing.over.set()
                producer.join()
        section.rows.append(row_of(way, seen, arguments.tables) | ({} if kept else {"way": f"{WAYS[way]}, not kept"}))
        show(section, Console(width=None if Console().is_terminal else 200))
    if arguments.json:
        save([section], {"tables": arguments.tables, "freshness": arguments.freshness}, arguments.json)


if __name__ == "__main__":
    main()
