"""What a commit does to everybody, what an attempt's publish does to the table, and the form in which states are told
apart."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from laketier.spi import Decision, Gap, Refused, Stale, Watermark, WatermarkLost, decide
from laketier_verification.model.guards import Guard, Invariant
from laketier_verification.model.state import (
    AGED,
    CLEARED,
    CUT,
    DOWN,
    ENDED,
    FLIGHT,
    FRESH,
    HEAD,
    IDLE,
    LANDED,
    MARKED,
    NEXT,
    NONE,
    OLD,
    PAST,
    RESOLVED,
    STAGED,
    UNFIT,
    UNKNOWN,
    Driver,
    State,
)
from laketier_verification.model.worlds import World


def initial(world: World) -> State:
    """An empty table, and nobody has started."""
    return State(
        rows=(0,) * (world.variants * world.epochs),
        mark=None,
        acknowledged=(0,) * world.logs,
        drivers=tuple(Driver(line, 0, DOWN, 0, NONE) for line in world.drivers),
    )


@cache
def ruling(world: World, mark: tuple[int, int] | None, line: int, epoch: int) -> str:
    """`laketier.spi.decide`, the real one: "proceed", "done", or the name of the refusal."""
    token = world.lines[line].token(epoch)
    watermark = None
    if mark is not None:
        last = world.lines[mark[0]].token(mark[1])
        watermark = Watermark(last, "c")
        if not world.has(Guard.RUN_CHECK):
            token = replace(token, run=last.run)
        if not world.has(Guard.CONTENT_CHECK):
            token = replace(token, content=None)
        if not world.has(Guard.FENCE_CHECK):
            token = replace(token, fence=max(token.fence, last.fence))
    try:
        return "proceed" if decide(watermark, token) is Decision.PROCEED else "done"
    except Refused as refusal:
        if isinstance(refusal, Stale) and not world.has(Guard.STALE_CHECK):
            return "done"
        if isinstance(refusal, Gap) and not world.has(Guard.GAP_CHECK):
            return "proceed"
        if isinstance(refusal, WatermarkLost) and not world.has(Guard.LOST_CHECK):
            return "proceed"
        return type(refusal).__name__


def compares(world: World, epoch: int) -> bool:
    """Whether the publish of this epoch is a compare-and-set."""
    if epoch in world.empty:
        return world.has(Guard.EMPTY_COMPARE_AND_SET)
    return world.has(Guard.COMPARE_AND_SET)


def commit(world: World, state: State) -> State:
    """Somebody's commit took effect. A version is nothing but a name to compare, so "the table is still as I opened it"
    is one bit, which every commit clears; a request in flight that was compared with the old version can't land."""
    drivers = []
    for line, epoch, phase, flags, files in state.drivers:
        if files != NONE and files & FLIGHT and compares(world, epoch):
            files &= ~FLIGHT
        drivers.append(Driver(line, epoch, phase, flags & ~FRESH, files))
    loose = state.loose
    if loose:
        loose = tuple(a._replace(files=a.files & ~FLIGHT) if compares(world, a.epoch) else a for a in loose)
    return state._replace(drivers=tuple(drivers), loose=loose)


def each_attempt(state: State, *, clear: int) -> State:
    """The state with ``clear`` cleared in the flags of each attempt."""
    return state._replace(
        drivers=tuple(d if d.files == NONE else d._replace(files=d.files & ~clear) for d in state.drivers),
        loose=tuple(a._replace(files=a.files & ~clear) for a in state.loose),
    )


def show_rows(world: World, state: State, line: int, epoch: int) -> State:
    """The rows of an epoch become visible, once more. Twice is as bad as thrice."""
    if epoch in world.empty:
        return state
    at = world.lines[line].variant * world.epochs + epoch
    rows = list(state.rows)
    rows[at] = min(2, rows[at] + 1)
    return state._replace(rows=tuple(rows))


def set_mark(world: World, state: State, line: int, epoch: int) -> State:
    """The watermark becomes this token. The caller sets MARKED."""
    fence = world.lines[line].fence
    if fence < state.fence:
        state = state._replace(breach=Invariant.FENCE.name)
    state = each_attempt(state, clear=MARKED)
    mark = None if world.lines[line].run is None else (line, epoch)
    return state._replace(mark=mark, fence=max(fence, state.fence))


def effect(world: World, state: State, line: int, epoch: int, files: int) -> tuple[State, int]:
    """`LakeCommitter.publish` takes effect, for an attempt with the flags ``files``: rows and watermark in one step.
    Returns the table and the attempt's new flags."""
    if files & UNFIT and epoch not in world.empty:
        state = state._replace(breach=Invariant.FITS.name)
    if world.has(Guard.STAGED_IS_INVISIBLE):
        state = show_rows(world, state, line, epoch)
    files = (files | LANDED) & ~FLIGHT if world.lines[line].run is None else files & ~FLIGHT
    if epoch not in world.empty:
        files |= HEAD
    if world.has(Guard.ATOMIC_WATERMARK):
        state = set_mark(world, state, line, epoch)
        files |= MARKED
    return commit(world, state), files


def settle(world: World, state: State) -> State:
    """Forget what no later step, and no invariant, can ask for; so that states which differ in nothing else are one.

    - An attempt that nobody holds, or that is only waiting for its acknowledgement, matters while its request is in
      flight, or while a collector has it in view. What is forgotten is either published, where only a compactor and an
      expirer touch it, or deleted, or an orphan (`Invariant.LEAK`).
    - Whether a driver's view is fresh matters between its look and its publish.
    - A collector that has nothing of these in view can only delete what is dead: its commit is a foreign one.
    """
    drivers = tuple([_settled(world, state, driver) for driver in state.drivers])
    loose = state.loose
    if loose:
        left = (attempt._replace(files=attempt.files & _INERT) for attempt in loose)
        loose = tuple(sorted({attempt for attempt in left if _matters(world, attempt.files)}))
    collector = state.collector
    if collector:
        staged = any(driver.files & AGED for driver in drivers if driver.files != NONE)
        if not staged and not any(attempt.files & AGED for attempt in loose):
            collector = IDLE
    if drivers == state.drivers and loose == state.loose and collector == state.collector:
        return state
    return state._replace(drivers=drivers, loose=loose, collector=collector)


_INERT = ~(MARKED | OLD | UNFIT)
"""What nobody asks of an attempt that will not be looked at again."""


def _matters(world: World, files: int) -> bool:
    in_view = files & AGED and files & (HEAD | PAST)
    named = files & HEAD and not world.has(Guard.UNIQUE_NAMES)
    return bool(files & FLIGHT or in_view or named)


def _settled(world: World, state: State, driver: Driver) -> Driver:
    line, epoch, phase, flags, files = driver
    if phase not in (STAGED, CLEARED):
        flags = 0
    elif phase == STAGED:
        flags &= UNKNOWN | CUT
    if phase == RESOLVED and files > 0:
        files &= _INERT
        if not _matters(world, files):
            files = 0
    if phase == NEXT and (epoch >= world.epochs or epoch == state.acknowledged[world.lines[line].log]):
        phase = DOWN
    if phase in (DOWN, ENDED):
        epoch = 0
    if (line, epoch, phase, flags, files) == driver:
        return driver
    return Driver(line, epoch, phase, flags, files)


def canonical(state: State) -> State:
    """Drivers of one line are the same but for their place, so their places don't matter. (The line is part of the
    driver: drivers with different tokens stay apart.)"""
    drivers = tuple(sorted(state.drivers))
    return state if drivers == state.drivers else state._replace(drivers=drivers)
