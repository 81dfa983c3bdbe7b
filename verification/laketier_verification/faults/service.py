"""The crash windows of the tiering service: ``python -m laketier_verification.faults service --format delta``.

Two workers (``laketier serve``) share a state database, with short leases, while rows are appended to the logs of a few
tables. One of them is killed at each failpoint in turn, or stopped until its leases are taken over and then let go on;
the state database is lost, tables of the source are made anew, snapshots are expired by others. In the end a reader
that is not laketier counts: each row of each log must be in its lake table, once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from laketier_verification.faults.foreign_read import NAMES
from laketier_verification.faults.keyed_lab import KeyedLab
from laketier_verification.faults.races import write_json
from laketier_verification.faults.service_judge import Verdict
from laketier_verification.faults.service_lab import Lab
from laketier_verification.faults.service_scenarios import SCENARIOS, Scenario
from laketier_verification.faults.topics_lab import TopicsLab
from laketier_verification.kafka_server import KafkaServer
from laketier_verification.postgresql import running_postgresql


def play(scenario: Scenario, format: str, folder: Path) -> Verdict:
    """Run one; whatever goes wrong is in the verdict."""
    with ExitStack() as stack:
        server = stack.enter_context(running_postgresql()) if scenario.server else None
        if scenario.broker:
            (folder / "kafka").mkdir()
            broker = KafkaServer(os.environ["KAFKA_LIBS"], folder / "kafka")
            stack.callback(broker.kill)
            lab: Lab = TopicsLab(format, folder, broker, **scenario.lab)
        else:
            lab = (KeyedLab if scenario.keyed else Lab)(format, folder, server=server, **scenario.lab)
        stack.callback(lab.close)
        try:
            return scenario.script(lab)
        except Exception as error:  # noqa: BLE001 - a table that can't be read is a result, and so is a hang
            return Verdict(wrong=[f"{type(error).__name__}: {error}"])


def main(arguments: argparse.Namespace) -> int:
    results: dict[str, Any] = {}
    failed = 0
    for scenario in SCENARIOS:
        if not fnmatch(scenario.name, arguments.only):
            continue
        if scenario.broker and "KAFKA_LIBS" not in os.environ:
            print(f"{arguments.format}: {scenario.name}: not run: KAFKA_LIBS names no folder with Kafka's jars")
            continue
        started = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="laketier-service-"))
        verdict = play(scenario, arguments.format, folder)
        seconds = round(time.monotonic() - started, 1)
        results[scenario.name] = asdict(verdict) | {"seconds": seconds}
        failed += not verdict.clean
        good = "ok" if verdict.clean else "FAILED"
        print(
            f"{arguments.format}: {scenario.name}: {good}: {verdict.rows} rows, lost {verdict.lost}, doubled "
            f"{verdict.doubled}, alien {verdict.alien}, dead letters {verdict.dead_letters}, orphans "
            f"{verdict.leftovers}, {seconds} s",
            flush=True,
        )
        for line in verdict.wrong[:10]:
            print(f"  WRONG: {line}", flush=True)
        if verdict.clean or not arguments.keep:
            shutil.rmtree(folder)
        else:
            print(f"  kept: {folder}", file=sys.stderr)
    document = {"format": arguments.format, "reader": NAMES[arguments.format], "failed": failed, "scenarios": results}
    write_json(arguments.json, f"service-{arguments.format}", document)
    return 1 if failed else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--only", default="*", help="scenarios whose name fits, as in a shell")
    parser.add_argument("--keep", action="store_true", help="leave the folders of those that failed")
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")
