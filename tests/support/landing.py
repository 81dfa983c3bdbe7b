"""A landing zone with one table ``t``, and its log."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laketier.registry import OpenSource, open_log_source
from laketier.spi import LogOffsets, LogRange, TableLog

JSON = {"format": "json", "columns.id": "int64"}


def opened(zone: Path, **options: Any) -> OpenSource:
    """Options by their names, with ``_`` for ``-``."""
    values = {"path": str(zone), **{name.replace("_", "-"): value for name, value in options.items()}}
    return open_log_source("files", values, name="drop", origin="service.yaml")


def log_of(zone: Path, read: Mapping[str, Any] = JSON, **options: Any) -> TableLog:
    return opened(zone, **options).open("t", read)


def land(zone: Path, name: str, *ids: int, at: float | None = None) -> Path:
    """A JSON file, complete when its name is there."""
    return land_bytes(zone, name, b"".join(b'{"id": %d}\n' % i for i in ids), at=at)


def land_bytes(zone: Path, name: str, data: bytes, *, at: float | None = None) -> Path:
    path = zone / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_bytes(data)
    if at is not None:
        os.utime(hidden, (at, at))
    return hidden.rename(path)


def all_of(log: TableLog, start: int = 0, end: int | None = None) -> LogRange:
    end = log.bounds()["files"].latest if end is None else end
    return LogRange(LogOffsets({"files": start}), LogOffsets({"files": end}))


def rows(log: TableLog, wanted: LogRange | None = None, **how: Any) -> list[dict[str, Any]]:
    """As a task reads them: from pickled bytes."""
    splits = log.plan(all_of(log) if wanted is None else wanted)
    task: TableLog = pickle.loads(pickle.dumps(log))  # noqa: S301 - our own bytes
    return [row for split in splits for batch in task.read(split, **how) for row in batch.to_pylist()]


def ids(log: TableLog, wanted: LogRange | None = None) -> list[int]:
    return [row["id"] for row in rows(log, wanted)]
