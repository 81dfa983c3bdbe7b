"""The options of a source lake, and of one table in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from laketier.spi import Passthrough, option


@dataclass(frozen=True)
class LakeLogOptions:
    """``options.*`` of a source of type ``lake``."""

    lake: Passthrough = option(
        Passthrough(), "The lake that is read: lake.format, lake.warehouse, and the format's own keys, as for a sink."
    )


class Changes(Enum):
    """The kind of changes that is read from a table's commits."""

    APPENDS = "appends"
    FEED = "feed"


@dataclass(frozen=True)
class LakeLogTableOptions:
    """``read.*`` of one of its tables."""

    skip_changes: bool = option(
        False, "Pass over commits that deleted, updated or replaced rows, with the rows that they added."
    )
    changes: Changes = option(
        Changes.APPENDS,
        "What is read of commits. feed: the table's change feed, with the column _change_type; else appended rows.",
    )
    keep_layout: bool = option(
        True, "A lake table that is created gets the partitions and buckets of the one that is read."
    )
