"""The horizon of a table: files staged by attempts that began before it are never published any more.

It is a watermark like any other, of the pipeline `COLLECTOR`, so every format keeps it as safely as those of the users'
pipelines, and setting it is a compare-and-set that no round's publish can overlap.
"""

from __future__ import annotations

import time
from typing import Any

from laketier.spi import COLLECTOR, CorruptTable, LakeTieringFactory, RolledBack, TableState, Token, Watermark
from laketier.tiering.pipelines import set_watermark

_UNKNOWN_AGE = 3_600_000
"""After a foreign rollback the horizon may be later than the table says: rounds older than this (ms) are refused."""


def horizon_of(state: TableState) -> int | None:
    """The horizon, in ms since the epoch; None where orphans were never collected. O(1). Raises `CorruptTable`."""
    try:
        return _horizon(state.watermark(COLLECTOR))
    except RolledBack:
        return _after_rollback()


def raise_horizon(factory: LakeTieringFactory[Any], table_uuid: str, horizon: int) -> int:
    """Set the horizon, unless it is later already, and return what it is now. Driver. Raises `Conflict` and
    `UnknownOutcome`, as `set_watermark` does."""

    def change(last: Watermark | None) -> Token:
        epoch = 0 if last is None else last.token.epoch + 1
        return Token(COLLECTOR, table_uuid, epoch, content=str(max(horizon, _horizon(last) or 0)))

    def after_rollback() -> Token:
        # No lower than what rounds were held to since the rollback: an earlier collection, with a shorter grace period,
        # may have deleted files of rounds that a lower horizon would let through.
        return Token(COLLECTOR, table_uuid, 0, content=str(max(horizon, _after_rollback())))

    return _horizon(set_watermark(factory, COLLECTOR, change, after_rollback=after_rollback)) or 0


def _after_rollback() -> int:
    return time.time_ns() // 1_000_000 - _UNKNOWN_AGE


def _horizon(watermark: Watermark | None) -> int | None:
    if watermark is None:
        return None
    content = watermark.token.content or ""
    if not content.isdecimal():
        raise CorruptTable(f"the horizon of orphan collection is {content!r}, which is no time")
    return int(content)
