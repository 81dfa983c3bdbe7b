"""The rules of the schedule, without a database: which state follows which, when a table is due, how long a failed one
waits. Times are ms since the epoch, UTC."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from laketier.spi import LaketierError
from laketier.spi.errors import (
    Collected,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    Fenced,
    IncompatibleData,
    IncompatibleTable,
    NotBegun,
    OffsetsExpired,
    Overtaken,
    PluginError,
    Refused,
    RowsChanged,
    SchemaChanged,
    StagedFileLost,
    Stale,
    UnsafeTable,
    UnsupportedType,
)


class State(StrEnum):
    """Where a table stands."""

    NEW = "NEW"
    """Registered, and not read yet."""
    SCHEDULED = "SCHEDULED"
    """Fresh; waits for its ``due_at``."""
    PENDING = "PENDING"
    """Due, and in the queue."""
    TIERING = "TIERING"
    """A worker holds its lease."""
    TIERED = "TIERED"
    """Its round is finished. Passed through within one transaction: no row stays in it."""
    FAILED = "FAILED"
    """Its round failed; waits for its ``next_try_at``."""
    PAUSED = "PAUSED"
    """A person paused it."""
    STOPPED = "STOPPED"
    """Trying again can't help: a person must mend something, then resume it."""
    DROPPED = "DROPPED"
    """No longer in the source or the service's file, or dropped by a person."""
    RECREATED = "RECREATED"
    """The source has another table of this name now, which is a registration of its own."""


_ANY_TIME = frozenset({State.DROPPED, State.RECREATED})

TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.NEW: frozenset({State.SCHEDULED, State.PAUSED, State.STOPPED}) | _ANY_TIME,
    State.SCHEDULED: frozenset({State.PENDING, State.PAUSED, State.STOPPED}) | _ANY_TIME,
    State.PENDING: frozenset({State.TIERING, State.PAUSED, State.STOPPED}) | _ANY_TIME,
    # To PENDING: force-completed, given back, or its lease ran out. To PAUSED: the same of one that was paused in it.
    State.TIERING: frozenset({State.TIERED, State.PENDING, State.FAILED, State.STOPPED, State.PAUSED}) | _ANY_TIME,
    State.TIERED: frozenset({State.SCHEDULED, State.PAUSED}),
    State.FAILED: frozenset({State.PENDING, State.PAUSED, State.STOPPED}) | _ANY_TIME,
    State.PAUSED: frozenset({State.SCHEDULED, State.STOPPED}) | _ANY_TIME,
    State.STOPPED: frozenset({State.SCHEDULED}) | _ANY_TIME,
    # To FAILED: it is back, and its log can't be opened.
    State.DROPPED: frozenset({State.SCHEDULED, State.FAILED, State.PAUSED, State.STOPPED, State.RECREATED}),
    # Its source has it again, and a person says so.
    State.RECREATED: frozenset({State.SCHEDULED}),
}
"""The states that may follow each state. The only place that says so."""


class IllegalTransition(LaketierError):
    """A table can't go from the state it is in to the one that was asked for."""


def move(table: str, *path: State) -> State:
    """The last state of ``path``, once each step of it is a legal one. Raises `IllegalTransition`."""
    for before, after in itertools.pairwise(path):
        if after not in TRANSITIONS[before]:
            allowed = ", ".join(sorted(TRANSITIONS[before])) or "nothing"
            raise IllegalTransition(
                f"a table in state {before} can't become {after}",
                where=table,
                why=f"only {allowed} may follow {before}",
            )
    return path[-1]


def due_at(last_tiered_at: int, freshness_seconds: int, took_ms: int = 0) -> int:
    """When a table that was tiered then is due again, so that its next round ends while the lake is still fresh.

    ``took_ms``: how long the last round took from being due to its end, in the queue and at work. As the next one may
    take longer, half as much is added; a table is never due before half of its freshness is over.
    """
    freshness = freshness_seconds * 1000
    return last_tiered_at + freshness - min(took_ms * 3 // 2, freshness // 2)


def round_deadline(began_at: int, freshness_seconds: int) -> int:
    """When a round is to be force-completed, so that one big backlog neither holds its table's data back for longer
    than its freshness nor the worker from other tables."""
    return began_at + freshness_seconds * 1000


def is_fresh(now: int, last_tiered_at: int | None, freshness_seconds: int) -> bool:
    """Whether the lake is not older than the table's freshness allows."""
    return last_tiered_at is not None and now <= last_tiered_at + freshness_seconds * 1000


@dataclass(frozen=True)
class Backoff:
    """How long a table waits after failures: doubled from ``first_seconds`` to ``longest_seconds``, less a random part
    of up to ``jitter`` of it, so that tables which failed together don't come back together."""

    first_seconds: float = 5.0
    longest_seconds: float = 600.0
    jitter: float = 0.5

    def wait_ms(self, failures: int, draw: random.Random) -> int:
        """The wait after so many failures in a row (1 or more), in ms, at least 1."""
        doubled = self.first_seconds * 2.0 ** min(failures - 1, 60)
        longest = min(doubled, self.longest_seconds)
        return max(1, round(longest * (1 - self.jitter * draw.random()) * 1000))


_NEEDS_A_PERSON = (
    Refused,
    ConfigError,
    PluginError,
    FeatureNotSupported,
    OffsetsExpired,
    RowsChanged,
    IncompatibleTable,
    IncompatibleData,
    UnsafeTable,
    UnsupportedType,
    CorruptTable,
)


def is_retryable(error: BaseException) -> bool:
    """Whether trying the round again may help. Not for what only a person can mend. `Fenced`, `Stale` and
    `Overtaken` may: they say that someone else moved the table on; `SchemaChanged`, `StagedFileLost` and `Collected`
    too: the next round has the new schema, and files of its own, begun after the horizon that it finds. `NotBegun` says
    of a step that it failed, and its cause says why. `OffsetsExpired` may where it says that a newer snapshot has the
    rows."""
    if isinstance(error, NotBegun) and error.__cause__ is not None:
        return is_retryable(error.__cause__)
    if isinstance(error, OffsetsExpired) and error.again:
        return True
    moved_on = (Fenced, Stale, Overtaken, SchemaChanged, StagedFileLost, Collected)
    return isinstance(error, moved_on) or not isinstance(error, _NEEDS_A_PERSON)
