"""The failpoints of a round of the tiering service, in the order in which it passes them.

Between them come those of the commit itself: `laketier.tiering.failpoints`.
"""

from __future__ import annotations

from laketier.dead_letters.failpoints import DEAD_LETTERS

LEASED = "service.leased"
"""After tables were leased, before anything else is known of them. Once per lot of leases."""
PLANNED = "service.planned"
"""After a table's round was planned, before its tasks run."""
STAGED = "service.staged"
"""After a table's tasks answered, before its commit."""
COMMITTED = "service.committed"
"""After the commit in the lake, before the state database is told."""
FINISHED = "service.finished"
"""After it was told."""

SERVICE = (LEASED, PLANNED, STAGED, DEAD_LETTERS, COMMITTED, FINISHED)

__all__ = ["COMMITTED", "DEAD_LETTERS", "FINISHED", "LEASED", "PLANNED", "SERVICE", "STAGED"]
