"""The failpoints of a round of the tiering service, in the order in which it passes them.

Between them come those of the commit itself: `laketier.tiering.failpoints`.
"""

from __future__ import annotations

from laketier.kit.failpoints import failpoint

LEASED = "service.leased"
"""After tables were leased, before anything else is known of them. Once per lot of leases."""
PLANNED = "service.planned"
"""After a table's round was planned, before its tasks run."""
STAGED = "service.staged"
"""After a table's tasks answered, before its commit."""
DEAD_LETTERS = "service.dead-letters"
"""After the bad records were published, before the rows are."""
COMMITTED = "service.committed"
"""After the commit in the lake, before the state database is told."""
FINISHED = "service.finished"
"""After it was told."""

LETTERS_STAGED = "replay.staged"
"""After a replay staged the rows of dead letters, before it writes down which letters they are of."""
LETTERS_CHOSEN = "replay.chosen"
"""After it wrote that down, before the rows are published."""

REPLAY = (LETTERS_STAGED, LETTERS_CHOSEN)
SERVICE = (LEASED, PLANNED, STAGED, DEAD_LETTERS, COMMITTED, FINISHED)

__all__ = [
    "COMMITTED",
    "DEAD_LETTERS",
    "FINISHED",
    "LEASED",
    "LETTERS_CHOSEN",
    "LETTERS_STAGED",
    "PLANNED",
    "REPLAY",
    "SERVICE",
    "STAGED",
    "failpoint",
]
