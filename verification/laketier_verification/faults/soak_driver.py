"""The driver of a soak: epoch after epoch, until it is killed or done.

``python -m laketier_verification.faults.soak_driver FOLDER FORMAT EPOCHS``
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil

from laketier.spi import Collected, Token
from laketier.tiering import TieringRound
from laketier_verification.faults.marked import PATIENT, MarkedTable, rows_of
from laketier_verification.faults.progress import Progress, follow

ROWS = 10
OPTIONS = {"iceberg": {"expire-in-commit": "true"}}


def main() -> None:
    """Writes a line of ``metrics.jsonl`` for each epoch that it acknowledged."""
    folder, name, epochs = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    table = MarkedTable(name, str(folder / "warehouse"), OPTIONS.get(name, {}))
    progress = Progress(folder / "progress")
    me = psutil.Process()
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as metrics:

        def run_epoch(epoch: int, content: str) -> None:
            staged = time.perf_counter()
            while True:
                factory = table.factory
                tiering = TieringRound(factory, token=Token("p", progress.run, epoch, content=content), policy=PATIENT)
                tiering.begin()
                results = table.stage(
                    factory, [[rows_of(epoch, "ours", ROWS // 2, first=task * 100)] for task in (0, 1)]
                )
                started, cpu = time.perf_counter(), time.process_time()
                try:
                    outcome = tiering.commit(results).outcome
                except Collected:
                    continue  # as an engine's next attempt would
                break
            line = {
                "epoch": epoch,
                "commit": time.perf_counter() - started,
                "cpu": time.process_time() - cpu,
                "round": time.perf_counter() - staged,
                "outcome": outcome.value,
                "rss": me.memory_info().rss,
                "files": me.num_fds(),
                "process": os.getpid(),
            }
            metrics.write(json.dumps(line) + "\n")
            metrics.flush()

        follow(progress, epochs, lambda epoch: f"epoch {epoch}", run_epoch)


if __name__ == "__main__":
    main()
