"""The failpoints of dead letters, in the order in which a round, and then a replay, passes them."""

from __future__ import annotations

DEAD_LETTERS = "service.dead-letters"
"""After the bad records were published, before the rows are."""

LETTERS_STAGED = "replay.staged"
"""After a replay staged the rows of dead letters, before it writes down which letters they are of."""
LETTERS_CHOSEN = "replay.chosen"
"""After it wrote that down, before the rows are published."""

REPLAY = (LETTERS_STAGED, LETTERS_CHOSEN)

__all__ = ["DEAD_LETTERS", "LETTERS_CHOSEN", "LETTERS_STAGED", "REPLAY"]
