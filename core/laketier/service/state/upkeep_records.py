"""The records of the upkeep of indexes. Times are ms since the epoch, UTC, by the store's clock."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_LOOK_SECONDS = 30.0
"""A table whose last look went well is looked at again after so long, or earlier."""


@dataclass(frozen=True)
class IndexFigures:
    """An index as its last upkeep left it.

    Attributes:
        name: Its name.
        segments: Its segments.
        rows_indexed: The rows that it covers.
        rows_not_indexed: The rows that a query has to look through without it.
        rows_deleted: Rows that were deleted and that it still counts.
        built_at: When its newest segment was made, in ms since the epoch. None where unknown.
        bytes: The bytes of its files. None where unknown.
        error: Why its last step failed. None where none did.
    """

    name: str
    segments: int = 0
    rows_indexed: int = 0
    rows_not_indexed: int = 0
    rows_deleted: int = 0
    built_at: int | None = None
    bytes: int | None = None
    error: str | None = None

    @property
    def tail_share(self) -> float:
        """The share of the rows that it does not cover. 0 for a table without rows."""
        rows = self.rows_indexed + self.rows_not_indexed
        return self.rows_not_indexed / rows if rows else 0.0


@dataclass(frozen=True)
class Upkeep:
    """The upkeep of a table's indexes.

    Attributes:
        tiering_table: The table (`RegisteredTable.id`).
        looked_at: When it last ended, in ms since the epoch. None before the first time.
        failures: Times in a row that something of it failed.
        failures_total: All such times.
        steps_total: What was done: appends, merges, builds.
        indexes: The indexes.
    """

    tiering_table: int
    looked_at: int | None
    failures: int
    failures_total: int
    steps_total: int
    indexes: tuple[IndexFigures, ...]


@dataclass(frozen=True)
class UpkeepLease:
    """The right to look after the indexes of a table. ``name``: ``source.table``."""

    tiering_table: int
    name: str
    worker: str
    failures: int
