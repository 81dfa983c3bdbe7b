"""What is drawn for a step of a series, and what is noted after it."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from laketier.spi import LakeSource, ScanPlan
from laketier_conformance.series.model import Row, State, same_columns

APPENDED, MOVED, REPLACED, CHANGED, UNSURE = "appended", "moved", "replaced", "changed by others", "unsure"
"""What commits did to rows: as a log of appended rows tells it."""


@dataclass(frozen=True)
class Draw:
    """All that is drawn for one step: it stays the same when other steps are left out. ``at``: its number."""

    at: int
    seed: int

    @cached_property
    def dice(self) -> random.Random:
        """For what does not depend on the table."""
        return random.Random(self.seed)

    def some(self, among: Iterable[int], count: int) -> list[int]:
        """Some of these: an id that is there in a shorter series, too, is chosen there, too."""
        return sorted(among, key=lambda each: zlib.crc32(f"{self.seed} {each}".encode()))[:count]


@dataclass
class Then:
    """The table as it was once. ``by``: rows, pipeline and epoch of the round that made it. ``ended``: it may be gone.
    ``after``: the number of steps. ``later``: after changes that made no snapshot, such as of columns."""

    snapshot: int
    state: State
    after: int
    by: tuple[int, str | None, int | None] | None = None
    ended: bool = False
    later: list[State] = field(default_factory=list)

    def as_read(self, schema: pa.Schema) -> State:
        """The state that a reader takes it for, who gets these columns: it may be any that it was. The first, if it is
        none."""
        return next((each for each in (self.state, *self.later) if same_columns(schema, each.schema)), self.state)


@dataclass(frozen=True)
class Stretch:
    """What the commits from one version to another did."""

    start: int
    end: int
    kind: str
    rows: Sequence[Row]
    after: State


@dataclass(frozen=True)
class Plan:
    """A plan that was made once, and not read since."""

    source: LakeSource
    plan: ScanPlan
    state: State
    after: int


@dataclass(frozen=True)
class Landed:
    """A commit of ours, and whether it landed."""

    commit: str
    there: bool
    after: int
