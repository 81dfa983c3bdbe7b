"""The dead letters of a table, read with the lake's own reader."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from laketier.config import LakeConfig
from laketier.plugins import open_lake
from laketier.sources.dead_letters import dead_letter_table
from laketier.sources.scan import scan
from laketier.spi import ScanRequest, TableNotFound

SHOWN = 20
LOOKED_AT = 100_000


@dataclass(frozen=True)
class DeadLetter:
    """Where a bad record is in the log, when it was written (ms since the epoch, UTC), and why it is bad."""

    bucket: str
    offset: int
    at: int | None
    error: str


@dataclass(frozen=True)
class DeadLetters:
    """``newest``: the newest few of those ``looked_at``, which are all if ``all_seen``."""

    table: str
    looked_at: int
    all_seen: bool
    newest: tuple[DeadLetter, ...]


def read_dead_letters(config: LakeConfig, *, shown: int = SHOWN, most: int = LOOKED_AT) -> DeadLetters | None:
    """Those of the lake table that ``config`` names; None when it has no such table. Looks at ``most`` rows at
    most. Raises what the lake does."""
    path = dead_letter_table(config.table)
    lake = open_lake(replace(config, table=path, partition_by=(), bucket_by=None, merge_schema=False))
    try:
        source = lake.source(lake.load_table())
    except TableNotFound:
        return None
    # One more than may be looked at tells whether there are more.
    _, batches = scan(source, ScanRequest(columns=("bucket", "offset", "at", "error"), limit=most + 1))
    seen = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal seen
        for batch in batches:
            kept = batch.slice(0, most - seen) if seen + batch.num_rows > most else batch
            seen += batch.num_rows
            yield from kept.to_pylist()

    newest = heapq.nlargest(shown, rows(), key=lambda row: (row["at"] is not None, row["at"] or 0, row["offset"] or 0))
    letters = tuple(
        DeadLetter(
            str(row["bucket"]),
            row["offset"],
            None if row["at"] is None else round(row["at"].timestamp() * 1000),
            str(row["error"]),
        )
        for row in newest
    )
    return DeadLetters(str(path), min(seen, most), seen <= most, letters)
