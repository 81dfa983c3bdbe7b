"""The failpoints of dead letters, in the order in which a round, and then a replay, passes them."""

from __future__ import annotations

DEAD_LETTERS = "service.dead-letters"
"""After the bad records were published, before the rows are."""

REPLAY_STAGED = "replay.staged"
"""After a replay staged the rows of dead letters, before it records which dead letters it takes."""
REPLAY_CHOSEN = "replay.chosen"
"""After the replay recorded the dead letters that it takes, before it publishes their rows."""

REPLAY = (REPLAY_STAGED, REPLAY_CHOSEN)

__all__ = ["DEAD_LETTERS", "REPLAY", "REPLAY_CHOSEN", "REPLAY_STAGED"]
