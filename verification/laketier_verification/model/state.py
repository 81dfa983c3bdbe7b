"""What is true at one moment: the table, its drivers, and the attempts that somebody may still act on.

States are nested tuples, so that they hash fast. Flags are bits of a plain integer for the same reason.
"""

from __future__ import annotations

from typing import NamedTuple

# -- of an attempt's files: one file stands for all of them, as every publish and discard takes all -------------------
HEAD = 1  # referenced by the current snapshot
PAST = 2  # referenced by an older one that is still retained
GONE = 4  # deleted
MARKED = 8  # the watermark has this attempt's commit id
FLIGHT = 16  # a request to publish it was sent, nobody has the answer, and it may take effect yet
OLD = 32  # the attempt began before the table's horizon
UNFIT = 64  # the schema changed after it was staged
AGED = 128  # it began before the time from which the collector that is at work looks back
LISTED = 256  # that collector's list has it
LANDED = 512  # the retained history has its commit id (asked for batches alone)
SAVED_HEAD, SAVED_OLD, SAVED_MARKED = 1024, 2048, 4096  # HEAD, OLD and MARKED of the snapshot that a restore goes to
LISTABLE = HEAD | PAST | GONE
NONE = -1  # no attempt

# -- of a driver ------------------------------------------------------------------------------------------------------
FRESH = 1  # the table is still as in the state that the driver opened
UNKNOWN = 2  # `_Loop.unknown`: an earlier attempt of this call ended in an unknown outcome
CUT = 4  # since then, history was dropped that could have said whether it landed
FREED = 8  # the name of the version that the driver would publish was freed by an expiry

# -- phases of a driver -----------------------------------------------------------------------------------------------
DOWN = 0  # not running, or about to start from its progress log
NEXT = 1  # it acknowledged an epoch and goes on to the next one
STAGED = 2  # it holds results; the loop's next step is to open the table
CLEARED = 3  # opened, decided, checked; the next step is to publish
DISCARDS = 4  # the epoch is there through a rival; the next step is to delete what this attempt staged
REFUSED = 5  # refused or lost too often, and certain; the same next step
RESOLVED = 6  # the round has ended well; the next step is the acknowledgement
FAILED = 7  # the call raised or its process died; the engine still holds the results
CONFIRMS = 8  # `begin` found the epoch done, nothing was staged; the next step is `confirm_done`
HALF = 9  # without ATOMIC_WATERMARK: the rows are visible, the watermark is not written yet
ENDED = 10  # a batch that nobody runs again

# -- phases of the collector ------------------------------------------------------------------------------------------
IDLE, LISTS, FENCED, SELECTED = 0, 1, 2, 3


class Driver(NamedTuple):
    """``line`` says whose tokens it has (`worlds.Line`), ``files`` are the flags of the attempt it holds."""

    line: int
    epoch: int
    phase: int
    flags: int
    files: int


class Attempt(NamedTuple):
    """An attempt that no driver holds any more, and that may still land, or still be hit."""

    line: int
    epoch: int
    files: int


class Saved(NamedTuple):
    """The snapshot that somebody will restore."""

    mark: tuple[int, int] | None
    rows: tuple[int, ...]


class State(NamedTuple):
    """``rows``: how often the rows of each (content, epoch) are visible. ``mark``: the watermark, as (line, epoch).
    ``lost``: the watermark's snapshot left the history (`RolledBack`), as the horizon's did with ``horizon_lost``.
    ``acknowledged``: epochs per progress log. ``fence``: the newest lease that ever published. ``excused``: bits of
    epochs whose acknowledged rows somebody took back on purpose. ``breach``: an invariant that a step itself broke.
    """

    rows: tuple[int, ...]
    mark: tuple[int, int] | None
    acknowledged: tuple[int, ...]
    drivers: tuple[Driver, ...]
    loose: tuple[Attempt, ...] = ()
    collector: int = IDLE
    fence: int = 0
    saved: Saved | None = None
    restored: bool = False
    lost: bool = False
    horizon_lost: bool = False
    excused: int = 0
    breach: str = ""
