"""How the rounds of a log go, and what became of one."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.rounds.log_task import OnBadRecordPolicy
from laketier.rounds.ranges import OnExpired
from laketier.spi import LogOffsets
from laketier.tiering import RoundOutcome


@dataclass(frozen=True)
class LogRoundSettings:
    """How a table's rounds go. ``fence``: of the lease, 0 without one. ``most``: offsets per round, about.
    ``within``: seconds after which a round begins no more tasks, but those without which a bucket would not get on; the
    rest of its range is left to the next one."""

    fence: int = 0
    most: int | None = None
    on_expired: OnExpired = OnExpired.FAIL
    on_bad_record: OnBadRecordPolicy = OnBadRecordPolicy.FAIL
    within: float | None = None


@dataclass(frozen=True)
class LogRoundResult:
    """The result of a round. ``outcome`` is None when the log held nothing new. ``end``: where the table has read up
    to. ``left``: offsets that the log held beyond that when the round was planned, ``left_at``: when the newest of
    them was written (ms since the epoch, UTC), where the source says so. ``start``: where this round began.
    ``rows``: written, so with a primary key those of rewritten files too, and no deleted ones. ``bad``: records that
    are no rows."""

    outcome: RoundOutcome | None
    end: LogOffsets
    left: int
    epoch: int | None = None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    bad: int = 0
    snapshot_id: int | None = None
    left_at: int | None = None
    start: LogOffsets | None = None
