"""Twenty topics into four formats by two workers, one of which is killed in mid-round: ``make demo-service``, or
``python demo.py`` where ``laketier[delta,demo,iceberg,kafka,lance,localfile,server,spark]`` is installed.

An embedded broker speaks Kafka's protocol, a producer writes to its topics all the while, and lake tables are read as
one with their logs, over and over: each such read must be just a prefix of the topic. At the end readers of other
projects count the lake tables.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from laketier.cli.demo.verify import count_with
from laketier.registry import open_lake
from laketier.rounds.configured_logs import open_configured_table
from laketier.service.schedule import State
from laketier.service.state import StateStore, TableStatus
from laketier.union_read.planning import plan_union
from laketier_kafka.mock_broker import KafkaBroker

FORMATS = ("delta", "iceberg", "lance", "localfile")
TOPICS = 20
PARTITIONS = 2
STRIDE = 1_000_000_000
NAMES = [f"{FORMATS[n % len(FORMATS)]}_{n:02}" for n in range(TOPICS)]
KILL = "publish.before=kill@7"
"""The first worker dies with everything staged and its seventh commit not made."""


def describe(folder: Path, bootstrap: str) -> Path:
    """The service file."""
    lakes = [
        {
            "source": "events",
            "include": [f"{name}_*"],
            "sink": {"lake.format": name, "lake.warehouse": str(folder / "lake" / name)},
        }
        for name in FORMATS
    ]
    document = {
        "name": "demo",
        "state": f"sqlite:///{folder}/state.db",
        "sources": {"events": {"type": "kafka", "options": {"bootstrap-servers": bootstrap}}},
        "defaults": {
            "freshness": "3 s",
            "target": "events.{table}",
            "read": {"value-format": "json", "columns": {"id": "int64", "text": "string"}},
        },
        "tables": lakes,
        "lease": "8 s",
        "discover-every": "10 s",
    }
    path = folder / "service.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


@dataclass
class Writing:
    """Rows go to all topics until it is told to stop. A row's id says its partition and place there."""

    bootstrap: str
    rows_per_second: int
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        draw = random.Random(7)
        pause = 0.05
        while not self.over.wait(pause):
            for _ in range(int(self.rows_per_second * pause)):
                topic, partition = draw.choice(NAMES), draw.randrange(PARTITIONS)
                row = row_of(partition, self.counts[topic, partition])
                producer.produce(topic, json.dumps(row).encode(), partition=partition)
                self.counts[topic, partition] += 1
            producer.poll(0)
        assert producer.flush(30) == 0


def row_of(partition: int, number: int) -> dict[str, Any]:
    return {"id": partition * STRIDE + number, "text": f"event {number} of partition {partition}"}


@dataclass
class Unions:
    """What the union reads saw."""

    reads: int = 0
    both: int = 0
    wrong: list[str] = field(default_factory=list)

    def read(self, service: Path, name: str) -> None:
        table, log = open_configured_table(service, f"events.{name}")
        planned = plan_union(table.config, log, tolerant=table.leaves_out_bad_records)
        batches = [batch for split in planned.splits for batch in planned.read(split)]
        log.close()
        found = Counter(pa.Table.from_batches(batches, schema=planned.schema)["id"].to_pylist())
        expected = {int(p) * STRIDE + i for p, end in planned.offsets.end.items() for i in range(end)}
        self.reads += 1
        self.both += planned.lake is not None and bool(planned.log_splits)
        lost, doubled = len(expected - found.keys()), sum(found.values()) - len(found)
        if lost or doubled or found.keys() - expected:
            self.wrong.append(f"{name} up to {dict(planned.offsets.end)}: {lost} rows lost, {doubled} doubled")


def start_worker(service: Path, engine: str, log: Path, failpoints: str | None = None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SPARK_MASTER": "local[1]"}
    if failpoints:
        environment["LAKETIER_FAILPOINTS"] = failpoints
    command = [str(Path(sys.executable).with_name("laketier")), "-v", "serve", str(service), "--engine", engine]
    return subprocess.Popen(command, env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)


def caught_up(statuses: tuple[TableStatus, ...], counts: Counter[tuple[str, int]]) -> bool:
    """Whether each table has read to the end of its topic."""
    ends = {each.table.source_table: json.loads(each.table.offsets or "{}") for each in statuses}
    wanted = {name: {str(p): counts[name, p] for p in range(PARTITIONS)} for name in NAMES}
    return ends == wanted


def verify(service: Path, counts: Counter[tuple[str, int]], folder: Path) -> list[list[str]]:
    """One row per format and tool: tables, rows expected and found, lost, doubled."""
    totals: dict[tuple[str, str], Counter[str]] = {}
    for name in NAMES:
        rows = [row_of(p, i) for p in range(PARTITIONS) for i in range(counts[name, p])]
        expected = folder / "expected" / f"{name}.parquet"
        expected.parent.mkdir(exist_ok=True)
        pq.write_table(
            pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("text", pa.string())])), expected
        )
        table, log = open_configured_table(service, f"events.{name}")
        log.close()
        lake = open_lake(table.config)
        for count in count_with(lake.plugin.open_with(lake.load_table()), [str(expected)]):
            total = totals.setdefault((table.config.format, count.tool), Counter())
            total.update(tables=1, expected=count.expected, found=count.found, lost=count.lost, doubled=count.doubled)
    return [
        [*key, *(f"{total[part]:,}" for part in ("tables", "expected", "found", "lost", "doubled"))]
        for key, total in totals.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--seconds", type=float, default=45, help="how long the producer writes")
    parser.add_argument("--rows-per-second", type=int, default=2000)
    arguments = parser.parse_args()
    out = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    with tempfile.TemporaryDirectory(prefix="laketier-service-") as name, KafkaBroker() as broker:
        return demonstrate(Path(name), broker, arguments, out)


def demonstrate(folder: Path, broker: KafkaBroker, arguments: argparse.Namespace, out: Console) -> int:
    for topic in NAMES:
        broker.create_topic(topic, PARTITIONS)
    service = describe(folder, broker.bootstrap)
    out.print(f"{TOPICS} topics on {broker.bootstrap}, {len(FORMATS)} formats, the state in {folder}/state.db")
    writing, unions = Writing(broker.bootstrap, arguments.rows_per_second), Unions()
    producer = threading.Thread(target=writing.run)
    producer.start()
    first = start_worker(service, arguments.engine, folder / "first.log", KILL)
    second = start_worker(service, arguments.engine, folder / "second.log")
    try:
        started = time.monotonic()
        killed = None
        while time.monotonic() - started < arguments.seconds or killed is None:
            unions.read(service, random.choice(NAMES))
            if killed is None and first.poll() is not None:
                killed = first.returncode
                out.print(
                    f"after {time.monotonic() - started:.0f} s the first worker ended with {killed} (SIGKILL is -9)"
                )
            if time.monotonic() - started > 10 * arguments.seconds:
                break
        writing.over.set()
        producer.join()
        out.print(f"{sum(writing.counts.values()):,} rows were written; the second worker takes the rest")
        with StateStore.open(f"sqlite:///{folder}/state.db", service="demo") as store:
            deadline = time.monotonic() + 300
            while not caught_up(store.snapshot(), writing.counts) and time.monotonic() < deadline:
                unions.read(service, random.choice(NAMES))
            second.send_signal(signal.SIGTERM)
            drained = second.wait(timeout=60)
            takeovers = sum(
                record.ending == "expired" for each in store.snapshot() for record in store.rounds(each.table.id, 500)
            )
            complete = caught_up(store.snapshot(), writing.counts)
            settled = all(each.table.state is not State.STOPPED for each in store.snapshot())
    finally:
        writing.over.set()
        for worker in (first, second):
            worker.kill()
            worker.wait()
    subprocess.run([str(Path(sys.executable).with_name("laketier")), "service", "status", str(service)], check=False)
    shown = Table("format", "read by", "tables", "expected", "found", "lost", "doubled")
    counted = verify(service, writing.counts, folder)
    for row in counted:
        shown.add_row(*row)
    out.print(shown)
    out.print(
        f"union reads: {unions.reads}, {unions.both} of them from both halves, wrong: {len(unions.wrong)}; "
        f"leases taken over: {takeovers}; the second worker drained with {drained}"
    )
    for line in unions.wrong[:10]:
        out.print(f"WRONG {line}")
    exact = all(row[3] == row[4] and row[5] == row[6] == "0" for row in counted)
    good = exact and complete and settled and not unions.wrong and killed == -signal.SIGKILL and drained == 0
    out.print("every row is there once" if good else "[red]this is not as it should be[/]")
    if not good:
        for log in ("first.log", "second.log"):
            out.print(f"--- {log}\n{(folder / log).read_text()[-3000:]}", markup=False)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
