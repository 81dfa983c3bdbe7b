"""Tables that other tools wrote, as an author hands them over to the suite (`Harness.foreign_tables`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa

LOAD: Final = "load"
READ: Final = "read"
APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
ADD_COLUMN: Final = "add-column"
CHANGES: Final = "changes"
ORPHANS: Final = "orphans"
OPERATIONS: Final = (LOAD, READ, APPEND, OVERWRITE, ADD_COLUMN, CHANGES, ORPHANS)
"""What may be refused of such a table. Who refuses to load it refuses all."""

Step = Callable[[], object]


def plain_rows(ids: pa.DataType) -> pa.Table:
    """Five rows for a tool to write, of types that nearly every format has: with nulls, NaN, infinity, -0.0, empty and
    odd text, and the first and the last day. ``ids``: the type of the column ``id``, as 1, 2, 3, null and 5."""
    return pa.table(
        {
            "name": pa.array(["a", None, "ü%20=/", "", "z" * 40], pa.string()),
            "id": pa.array([1, 2, 3, None, 5], ids),
            "value": pa.array([0.5, float("nan"), None, -0.0, float("inf")], pa.float64()),
            "day": pa.array(
                [date(2026, 1, 2), None, date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)], pa.date32()
            ),
        }
    )


@dataclass(frozen=True, kw_only=True)
class ForeignTable:
    """One table that another tool made and keeps writing to. Each step opens the table anew, as another process does.

    Attributes:
        rows: All rows as the tool itself reads them now, its columns in the table's order; with an id of ``snapshots``,
            those of that older snapshot.
        appends: The tool appends rows, in one commit or several, and does nothing else.
        moves: The tool moves rows to other files (a compaction), and changes none.
        changes: The tool deletes, updates or replaces rows. At least one of those that were there is gone then.
        evolves: The tool changes the columns: it adds, renames, widens, reorders or drops some.
        snapshots: The ids (`ScanRequest.snapshot_id`) of older snapshots that the tool still reads now, the oldest
            first. Of a format without time travel nobody asks.
        refuses: What of `OPERATIONS` the plugin refuses, as it can't do it right. Each of them is refused by a sentence
            and without an effect; all others go well.
    """

    rows: Callable[..., pa.Table]
    appends: Step | None = None
    moves: Step | None = None
    changes: Step | None = None
    evolves: Step | None = None
    snapshots: Callable[[], Sequence[int]] | None = None
    refuses: Collection[str] = ()

    def __post_init__(self) -> None:
        given = (self.refuses,) if isinstance(self.refuses, str) else tuple(self.refuses)
        unknown = sorted(set(given).difference(OPERATIONS))
        if unknown:
            raise ValueError(f"refuses names {unknown}: there are {', '.join(OPERATIONS)}")
        object.__setattr__(self, "refuses", OPERATIONS if LOAD in given else given)
