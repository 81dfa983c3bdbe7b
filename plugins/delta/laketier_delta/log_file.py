"""The payload of a split for its reader."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fed(Enum):
    """The changes of rows that a file gives to the change feed."""

    INSERTS = "inserts"
    """All of its rows came."""
    DELETES = "deletes"
    """All of its rows went."""
    BEFORE = "before"
    """A file of changes: its rows as they were."""
    AFTER = "after"
    """A file of changes: its rows as they are."""


@dataclass(frozen=True)
class LogFile:
    """A file that the Delta log names. ``path``: relative to the table. ``fed``: where it is read for the feed."""

    path: str
    fed: Fed | None = None
