"""The durable progress log of a small engine: it plays the part that a checkpoint plays for Spark.

::

    <folder>/run               the id of this log; a new log has a new one
    <folder>/intents/<epoch>   what the epoch reads, decided before anything is written
    <folder>/acks/<epoch>      the epoch is done, and when
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Progress:
    """One log. Entries are never changed; each is durable before the next step."""

    folder: Path

    @property
    def run(self) -> str:
        """The log's id, drawn when it is first asked for."""
        path = self.folder / "run"
        if not path.exists():
            _put(path, uuid.uuid4().hex)
        return path.read_text(encoding="utf-8")

    def intend(self, epoch: int, content: str) -> str:
        """What ``epoch`` reads: what was said of it before, if anything was."""
        path = self.folder / "intents" / str(epoch)
        if not path.exists():
            _put(path, content)
        return path.read_text(encoding="utf-8")

    def acknowledge(self, epoch: int) -> None:
        """The epoch is done. Another driver may have said so already."""
        _put(self.folder / "acks" / str(epoch), json.dumps({"at": time.time(), "process": os.getpid()}))

    @property
    def acknowledged(self) -> list[int]:
        """The epochs that are done."""
        folder = self.folder / "acks"
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal()) if folder.exists() else []

    def acknowledged_at(self, epoch: int) -> float:
        """When, in seconds since 1970."""
        text = (self.folder / "acks" / str(epoch)).read_text(encoding="utf-8")
        return float(json.loads(text)["at"])

    @property
    def next_epoch(self) -> int:
        """Where a restarted driver goes on: behind the newest acknowledgement, as Spark does."""
        return max(self.acknowledged, default=-1) + 1


def follow(
    progress: Progress,
    epochs: int,
    content_of: Callable[[int], str],
    run_epoch: Callable[[int, str], None],
) -> None:
    """Drive to the end. Like Spark, it looks at the log once, when it starts, and counts by itself from there: a
    driver that is overtaken by another does not notice it here."""
    for epoch in range(progress.next_epoch, epochs):
        run_epoch(epoch, progress.intend(epoch, content_of(epoch)))
        progress.acknowledge(epoch)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
