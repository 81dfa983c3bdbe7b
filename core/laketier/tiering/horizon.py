"""The horizon of a table: files staged by attempts that began before it are never published any more.

It is a watermark like any other, of the pipeline `COLLECTOR`, so every format keeps it as safely as those of the users'
pipelines, and setting it is a compare-and-set that no round's publish can overlap.

It is a moment, but no clock has to be right for it. A collector deletes only files whose attempts it bars by it, so
what is deleted and what may be published never overlap, whatever hosts take the time to be. And a round is told the
horizon when it begins, so that its attempts begin after it also where a clock is behind, or where the horizon was set
by one that was ahead. Only attempts that were under way when a horizon was raised can be refused by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    COLLECTOR,
    CommitterInitContext,
    ConfigError,
    CorruptTable,
    LakeCommitter,
    LakeTieringFactory,
    RolledBack,
    TableState,
    Token,
    Watermark,
    host_time,
    new_attempt_id,
)
from laketier.spi.writer import LATEST
from laketier.tiering.pipelines import set_watermark, show

_UNKNOWN_AGE = 3_600_000
"""After a foreign rollback the horizon may be later than the table says: rounds older than this (ms) are refused."""

Clock = Callable[[], int]
"""Ms since the epoch, by the storage where it can be asked. Asking may cost requests."""


@dataclass(frozen=True)
class Horizon:
    """A table's horizon as people may want to see it: ``at`` and ``set_at`` in ms since the epoch, the second by the
    collector's own clock. ``ahead``: by how many ms it lies in the future of this host, 0 where it does not."""

    at: int
    set_at: int

    @property
    def ahead(self) -> int:
        return max(0, self.at - host_time())


def show_horizon(state: TableState) -> Horizon | None:
    """None where orphans were never collected. Driver. Raises `RolledBack` and `CorruptTable`."""
    watermark = show(state, COLLECTOR)
    return None if watermark is None else Horizon(_moment(watermark), watermark.committed_at)


def clock_of(committer: LakeCommitter[Any]) -> Clock:
    """The storage's clock; this host's where the format can't ask the storage."""

    def now() -> int:
        told = committer.storage_time()
        return host_time() if told is None else told

    return now


def clock_of_table(factory: LakeTieringFactory[Any]) -> Clock:
    """The same as `clock_of` without a committer: one is made when the clock is asked."""

    def now() -> int:
        committer = factory.create_committer(CommitterInitContext(commit_id=new_attempt_id()))
        try:
            return clock_of(committer)()
        finally:
            committer.close()

    return now


def horizon_of(state: TableState, clock: Clock = host_time) -> int | None:
    """The horizon, in ms since the epoch; None where orphans were never collected. O(1). Raises `CorruptTable`."""
    try:
        return _horizon(state.watermark(COLLECTOR))
    except RolledBack:
        return _after_rollback(clock)


def attempts_after(state: TableState, clock: Clock) -> int:
    """Return the argument for `new_attempt_id` of a round that begins at ``state``. Only a horizon that is raised
    later can then refuse its attempts."""
    try:
        return _horizon(state.watermark(COLLECTOR)) or 0
    except RolledBack:
        return clock()


def raise_horizon(
    factory: LakeTieringFactory[Any],
    table_uuid: str,
    horizon: int,
    *,
    newest: int | None = None,
    clock: Clock | None = None,
) -> int:
    """Set the horizon, unless it is later already, and return the present one. Driver. ``newest`` is the newest time
    that the storage knows. Raises `ValueError` for a horizon beyond it, which only a wrong clock can ask for. Raises
    `Conflict`, `NotBegun` and `UnknownOutcome`, as `set_watermark` does."""
    if newest is not None and horizon > newest:
        raise ValueError(f"the horizon {horizon} is beyond {newest}, the newest time that the storage knows")

    def change(last: Watermark | None) -> Token:
        epoch = 0 if last is None else last.token.epoch + 1
        return Token(COLLECTOR, table_uuid, epoch, content=str(max(horizon, _horizon(last) or 0)))

    def after_rollback() -> Token:
        # No lower than what rounds were held to since the rollback: an earlier collection, with a shorter grace period,
        # may have deleted files of rounds that a lower horizon would let through.
        return Token(COLLECTOR, table_uuid, 0, content=str(max(horizon, _after_rollback(clock or host_time))))

    return _moment(set_watermark(factory, COLLECTOR, change, after_rollback=after_rollback))


def lower_horizon(factory: LakeTieringFactory[Any], table_uuid: str) -> tuple[int, int]:
    """Lower a horizon in the storage's future to the storage's present time. Driver. Returns the former and the new
    horizon. Raises `ConfigError` if no horizon lies in the future, and errors of `set_watermark`.

    It is never lowered further: deleted files had been staged before the present time, and rounds that were staged
    before it stay refused.
    """
    committer = factory.create_committer(CommitterInitContext(commit_id=new_attempt_id()))
    try:
        with naming_storage_errors("the storage was asked for the time"):
            now = committer.storage_time()
    finally:
        committer.close()
    if now is None:
        raise ConfigError(
            "the horizon can't be lowered",
            why="the format can't ask for the time of the storage's clock, so a safe horizon is unknown",
            fix="Wait until the horizon has passed; rounds that begin now are not refused.",
        )
    was = 0

    def change(last: Watermark | None) -> Token:
        nonlocal was
        was = _horizon(last) or 0
        if last is None or was <= now:
            raise ConfigError(
                "there is no horizon that lies in the future",
                fix="Nothing was changed. See `laketier maintain horizon`.",
            )
        return Token(COLLECTOR, table_uuid, last.token.epoch + 1, content=str(now))

    lowered = _moment(set_watermark(factory, COLLECTOR, change))
    return was, lowered


def _after_rollback(clock: Clock) -> int:
    return clock() - _UNKNOWN_AGE


def _horizon(watermark: Watermark | None) -> int | None:
    return None if watermark is None else _moment(watermark)


def _moment(watermark: Watermark) -> int:
    content = watermark.token.content or ""
    if not content.isdecimal() or len(content) > len(str(LATEST)) or int(content) > LATEST:
        raise CorruptTable(f"the horizon of orphan collection is {content[:40]!r}, which is no time")
    return int(content)
