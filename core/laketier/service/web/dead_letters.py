"""The dead letters of a table, read with the lake's own reader."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from laketier.config import LakeConfig
from laketier.dead_letters.records import DeadLetter, DeadLetterState, read_replays, scan_dead_letters
from laketier.dead_letters.table import dead_letter_table

SHOWN = 20
LOOKED_AT = 20_000


@dataclass(frozen=True)
class ShownDeadLetter:
    """Where a bad record is in the log, when it was written (ms since the epoch, UTC), why it is bad, and what became
    of it."""

    bucket: str
    offset: int
    at: int | None
    error: str
    state: DeadLetterState


@dataclass(frozen=True)
class ShownDeadLetters:
    """``newest``: the newest few of those ``looked_at``, which are all if ``all_seen``. ``states``: how many of them
    are in which."""

    table: str
    looked_at: int
    all_seen: bool
    newest: tuple[ShownDeadLetter, ...]
    states: Counter[DeadLetterState] = field(default_factory=Counter)


def read_dead_letters(config: LakeConfig, *, shown: int = SHOWN, most: int = LOOKED_AT) -> ShownDeadLetters | None:
    """Those of the lake table that ``config`` names; None when it has no such table. Looks at ``most`` rows at
    most. Raises what the lake does."""
    # One more than may be looked at tells whether there are more.
    dead_letters = scan_dead_letters(config, limit=most + 1)
    if dead_letters is None:
        return None
    replays = read_replays(config)
    states: Counter[DeadLetterState] = Counter()
    seen = 0

    def looked_at() -> Iterator[tuple[DeadLetter, DeadLetterState]]:
        nonlocal seen
        for dead_letter in dead_letters:
            seen += 1
            if seen <= most:
                state = replays.state(dead_letter)
                states[state] += 1
                yield dead_letter, state

    newest = heapq.nlargest(
        shown,
        looked_at(),
        key=lambda each: (each[0].record.at is not None, each[0].record.at or 0, each[0].record.offset),
    )
    found = tuple(
        ShownDeadLetter(each.record.bucket, each.record.offset, each.record.at, each.record.error, state)
        for each, state in newest
    )
    return ShownDeadLetters(str(dead_letter_table(config.table)), min(seen, most), seen <= most, found, states)
