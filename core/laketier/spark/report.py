"""How a commit tells the driver what it did.

A Python data source has no metrics of its own in Spark, and commits in a process of its own. So its commits append to
a file that the driver reads (`laketier.spark.progress`).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class EpochProgress:
    """One epoch. ``rows``, ``files`` and ``bytes`` are what it wrote; ``outcome`` is `laketier.tiering.RoundOutcome`'s
    value; ``seconds`` is the time since the epoch before (or the start)."""

    table: str
    pipeline: str
    epoch: int
    outcome: str
    rows: int
    files: int
    bytes: int
    seconds: float
    commit_seconds: float

    def __str__(self) -> str:
        return (
            f"[table={self.table} pipeline={self.pipeline} epoch={self.epoch}] {self.outcome}: {self.rows:,} rows, "
            f"{self.files} files, {size_text(self.bytes)}, {self.seconds:.2f} s ({self.commit_seconds:.3f} s commit)"
        )


def append_report(path: str, progress: EpochProgress) -> None:
    """Append an epoch to the file that `EpochReports` reads. Called in the process that commits."""
    line = {**progress.__dict__, "at": time.time()}
    del line["seconds"]
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def size_text(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
