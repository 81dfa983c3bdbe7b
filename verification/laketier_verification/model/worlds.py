"""Who takes part: the bounds of one exploration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from laketier.spi import Token
from laketier_verification.model.guards import REDUNDANT, Guard


@dataclass(frozen=True)
class Line:
    """A succession of tokens. Drivers of the same line have the same tokens: a zombie and its successor, or replays.

    ``contents``: what identifies each epoch's input, None where that can't be known. ``variant``: which of two ways to
    cut the source into epochs; the same epoch of both holds rows in common. ``log``: the progress log that the
    acknowledgements go to. ``run`` is None for a batch without a pipeline.
    """

    run: str | None = "r"
    contents: tuple[str | None, ...] = ("a", "b", "c")
    variant: int = 0
    fence: int = 0
    log: int = 0

    def token(self, epoch: int) -> Token:
        assert self.run is not None
        return Token("p", self.run, epoch, fence=self.fence, content=self.contents[epoch])


@dataclass(frozen=True, eq=False)
class World:
    """``drivers``: the line of each. ``empty``: epochs without rows. The rest switches actors and engine habits on."""

    name: str
    about: str
    drivers: tuple[int, ...] = (0, 0)
    lines: tuple[Line, ...] = (Line(),)
    epochs: int = 2
    empty: frozenset[int] = frozenset()
    maintained: bool = False  # a compactor, an expirer and an orphan collector are at work
    altered: bool = False  # somebody changes the schema
    restored: str = ""  # somebody restores an older snapshot, once: "noticed" by the format, or "unnoticed"
    without: frozenset[Guard] = field(default_factory=frozenset)

    @property
    def variants(self) -> int:
        return 1 + max(line.variant for line in self.lines)

    @property
    def logs(self) -> int:
        return 1 + max(line.log for line in self.lines)

    @property
    def progresses(self) -> bool:
        """Whether the protocol alone leads to the end. A restore takes people; a batch is not run again."""
        return not self.restored and self.lines[0].run is not None

    def has(self, guard: Guard) -> bool:
        return guard not in self.without


_REPLAYS = World("replays", "a driver and its zombie on one checkpoint, and maintenance", maintained=True)
_EMPTY = World("empty", "the first epoch has no rows", empty=frozenset({0}), maintained=True)
_LEASES = World("leases", "two drivers, with leases 1 and 2", drivers=(0, 1), lines=(Line(fence=1), Line(fence=2)))
_CHECKPOINT = World(
    "checkpoint",
    "a second driver on an older copy of the checkpoint, whose epochs hold other rows",
    drivers=(0, 1),
    lines=(Line(), Line(contents=("x", "y", "z"), variant=1, log=1)),
)
_RUNS = World(
    "runs",
    "two checkpoints under one pipeline id, where contents can't be known",
    drivers=(0, 1),
    lines=(Line(contents=(None,) * 3), Line(run="s", contents=(None,) * 3, variant=1, log=1)),
)
_SCHEMA = World("schema", "somebody changes the schema", altered=True)
_RESTORE = World("restore", "somebody restores a snapshot; the format notices", maintained=True, restored="noticed")
_UNNOTICED = World("unnoticed", "somebody restores a snapshot; nobody notices", epochs=3, restored="unnoticed")
_BATCH = World(
    "batch",
    "two batches without a pipeline, and maintenance",
    drivers=(0, 1),
    lines=(Line(run=None), Line(run=None, variant=1, log=1)),
    epochs=1,
    maintained=True,
)

WORLDS = (
    _REPLAYS,
    _EMPTY,
    _LEASES,
    _CHECKPOINT,
    _RUNS,
    _SCHEMA,
    replace(_RESTORE, drivers=(0,)),
    _UNNOTICED,
    replace(_BATCH, drivers=(0,), lines=_BATCH.lines[:1]),
)
"""What the tests explore, and ``python -m laketier_verification.model`` without ``--full``."""

FULL = (
    replace(_REPLAYS, epochs=3),
    replace(_LEASES, maintained=True),
    replace(_CHECKPOINT, maintained=True),
    replace(_RUNS, maintained=True),
    replace(_SCHEMA, maintained=True),
    _RESTORE,
    _BATCH,
)
"""Wider bounds, for ``python -m laketier_verification.model --full``."""

SINGLE = replace(_REPLAYS, name="single", about="one epoch of the first", epochs=1)

WHERE = {
    Guard.EMPTY_COMPARE_AND_SET: _EMPTY,
    Guard.SCHEMA_CHECK: _SCHEMA,
    Guard.RUN_CHECK: _RUNS,
    Guard.CONTENT_CHECK: _CHECKPOINT,
    Guard.STALE_CHECK: _CHECKPOINT,
    Guard.FENCE_CHECK: _LEASES,
    Guard.GAP_CHECK: _UNNOTICED,
    Guard.LOST_CHECK: _UNNOTICED,
    Guard.CONFIRM_DONE: _UNNOTICED,
    Guard.LANDED: _BATCH,
    Guard.RESTORE_NOTICED: _RESTORE,
    Guard.ROLLBACK_KEEPS_HORIZON: _RESTORE,
    Guard.ROLLBACK_RAISES_HORIZON: replace(_RESTORE, epochs=1),
} | dict.fromkeys(REDUNDANT, SINGLE)
"""Where a guard is missed, if not in the first world."""


def world_without(guard: Guard) -> World:
    """The world in which the model does without ``guard``."""
    return replace(WHERE.get(guard, _REPLAYS), without=frozenset({guard}))
