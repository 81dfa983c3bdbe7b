"""The failpoints of dead letters, in the order in which a round, then a replay, then a renaming passes them."""

from __future__ import annotations

DEAD_LETTERS = "service.dead-letters"
"""After the bad records were published, before the rows are."""

REPLAY_STAGED = "replay.staged"
"""After a replay staged the rows of dead letters, before it records which dead letters it takes."""
REPLAY_CHOSEN = "replay.chosen"
"""After the replay recorded the dead letters that it takes, before it publishes their rows."""

RENAME_KEPT = "rename.kept"
"""After a pipeline's new name was kept for it, before its old one is closed."""
RENAME_CLOSED = "rename.closed"
"""After a pipeline's old name was closed, before anything else is renamed."""
RENAME_BESIDE = "rename.beside"
"""After the pipelines of its dead letters were renamed, before the new name is opened."""

RENAME = (RENAME_KEPT, RENAME_CLOSED, RENAME_BESIDE)
REPLAY = (REPLAY_STAGED, REPLAY_CHOSEN)

__all__ = [
    "DEAD_LETTERS",
    "RENAME",
    "RENAME_BESIDE",
    "RENAME_CLOSED",
    "RENAME_KEPT",
    "REPLAY",
    "REPLAY_CHOSEN",
    "REPLAY_STAGED",
]
