"""The steps of a driver: `TieringRound` and the loop of `laketier.tiering.publish`, and the engine around them.

A step is what happens between two moments at which somebody else could act or the process could die. `open`, `decide`
and the checks are one step: `open` takes an immutable view, and what follows until `publish` looks at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from laketier_verification.model.guards import Guard
from laketier_verification.model.state import (
    CLEARED,
    CONFIRMS,
    CUT,
    DISCARDS,
    DOWN,
    ENDED,
    FAILED,
    FLIGHT,
    FREED,
    FRESH,
    GONE,
    HALF,
    LANDED,
    MARKED,
    NEXT,
    NONE,
    OLD,
    REFUSED,
    RESOLVED,
    STAGED,
    UNFIT,
    UNKNOWN,
    Attempt,
    Driver,
    State,
)
from laketier_verification.model.table import commit, compares, effect, ruling, set_mark, show_rows
from laketier_verification.model.worlds import World

Steps = Iterator[tuple[str, State]]


def driver_steps(world: World, state: State, at: int) -> Steps:
    """All that driver ``at`` may do, or have done to it, now."""
    driver = state.drivers[at]
    phase = driver.phase
    if phase in (DOWN, NEXT):
        yield from _starts(world, state, at)
    elif phase == STAGED:
        yield _looks(world, state, at)
    elif phase == CLEARED:
        yield from _publishes(world, state, at)
    elif phase in (DISCARDS, REFUSED):
        yield _discards(world, state, at)
    elif phase == RESOLVED:
        yield _acknowledges(world, state, at)
    elif phase == FAILED:
        yield from _after_a_failure(world, state, at)
    elif phase == CONFIRMS:
        yield _confirms(world, state, at)
    elif phase == HALF:
        moved = set_mark(world, state, driver.line, driver.epoch)
        files = moved.drivers[at].files | MARKED
        yield (
            "writes the watermark, in a commit of its own",
            _put(commit(world, moved), at, phase=RESOLVED, files=files),
        )
    if phase in (NEXT, CONFIRMS):
        yield "is killed", _put(state, at, phase=DOWN)
    elif phase not in (DOWN, ENDED, FAILED):
        yield "is killed", _fails(world, state, at)
    if driver.files != NONE and driver.files & FLIGHT:
        landed, files = effect(world, state, driver.line, driver.epoch, driver.files)
        yield "has a publish take effect whose answer it never gets", _put(landed, at, files=files)


def loose_steps(world: World, state: State) -> Steps:
    """A request that outlived its driver takes effect."""
    for at, attempt in enumerate(state.loose):
        if attempt.files & FLIGHT:
            landed, files = effect(world, state, attempt.line, attempt.epoch, attempt.files)
            loose = (*landed.loose[:at], attempt._replace(files=files), *landed.loose[at + 1 :])
            yield f"a dead driver's publish of epoch {attempt.epoch} takes effect", landed._replace(loose=loose)


def _put(state: State, at: int, **changes: int) -> State:
    drivers = state.drivers
    return state._replace(drivers=(*drivers[:at], drivers[at]._replace(**changes), *drivers[at + 1 :]))


def _starts(world: World, state: State, at: int) -> Steps:
    """`TieringRound.begin`, and `write_task`. A stream that goes on does not begin (`LakeStreamWriter._follows`), so
    that a begin which says PROCEED adds nothing: both lead to staged files. A restarted driver takes the first epoch
    that its progress log does not hold, one that goes on takes its own next; the same epoch is the same content."""
    driver = state.drivers[at]
    line = world.lines[driver.line]
    epoch = driver.epoch if driver.phase == NEXT else state.acknowledged[line.log]
    if epoch >= world.epochs:
        return
    begun = "goes on" if driver.phase == NEXT else "starts"
    if line.run is not None and not state.lost and ruling(world, state.mark, driver.line, epoch) == "done":
        yield f"{begun}, and finds epoch {epoch} done", _put(state, at, epoch=epoch, phase=CONFIRMS)
    if not world.has(Guard.STAGED_IS_INVISIBLE):
        state = show_rows(world, state, driver.line, epoch)
    yield f"{begun}, and stages epoch {epoch}", _put(state, at, epoch=epoch, phase=STAGED, flags=0, files=0)


def _looks(world: World, state: State, at: int) -> tuple[str, State]:
    """`_Loop.attempt` up to `publish`: `_open`, `_is_done`, `_done`, `check_results`, `check_not_collected`."""
    driver = state.drivers[at]
    if world.lines[driver.line].run is None:
        if driver.flags & UNKNOWN and world.has(Guard.LANDED):
            if driver.files & LANDED:
                return "looks, and finds its commit id", _put(state, at, phase=RESOLVED)
            if driver.flags & CUT:
                return "looks, and can't tell any more (UnknownOutcome)", _fails(world, state, at)
    else:
        rule = "RolledBack" if state.lost else ruling(world, state.mark, driver.line, driver.epoch)
        if rule == "done":
            if driver.files & MARKED and world.has(Guard.COMMIT_ID):
                return "looks: the epoch is there, by its own commit id", _put(state, at, phase=RESOLVED)
            phase = DISCARDS if _certain(world, driver) else RESOLVED
            return "looks: the epoch is there, by a rival's commit id", _put(state, at, phase=phase)
        if rule != "proceed":
            return f"looks, and is refused ({rule})", _refused(world, state, at)
    if driver.files & UNFIT and world.has(Guard.SCHEMA_CHECK):
        return "looks, and is refused (TableChanged)", _refused(world, state, at)
    if driver.files & OLD and driver.epoch not in world.empty and world.has(Guard.HORIZON_CHECK):
        return "looks, and is refused (Collected)", _refused(world, state, at)
    return "looks, and may publish", _put(state, at, phase=CLEARED, flags=driver.flags & (UNKNOWN | CUT) | FRESH)


def _publishes(world: World, state: State, at: int) -> Steps:
    """`LakeCommitter.publish`, and what `_Loop` makes of its outcome: `_result`, `_lost`, `_unknown`."""
    driver = state.drivers[at]
    fresh = driver.flags & FRESH or not compares(world, driver.epoch)
    again = CLEARED if not world.has(Guard.DECIDE_AGAIN) else STAGED
    flags = driver.flags | (FRESH if again == CLEARED else 0)
    if fresh:
        landed, files = effect(world, state, driver.line, driver.epoch, driver.files)
        phase = RESOLVED if world.has(Guard.ATOMIC_WATERMARK) else HALF
        yield f"publishes epoch {driver.epoch}", _put(landed, at, phase=phase, files=files)
    elif driver.flags & FREED:
        yield "publishes under a version's name that was free again", _put(state, at, phase=RESOLVED)
    else:
        yield "publishes, and loses (Conflict)", _put(state, at, phase=again, flags=flags)
        # RetryPolicy.conflicts is some number; here it is any.
        yield "publishes, loses, and gives up (Conflict)", _refused(world, state, at)
    # The request did not arrive, or it is on its way, or it takes effect and the answer is lost: the first when it
    # never lands, the last when it lands at once. RetryPolicy.unknowns is any number too: giving up is being killed.
    files = driver.files | (FLIGHT if fresh else 0)
    if not world.has(Guard.UNKNOWN_IS_NO_FAILURE):
        yield "publishes, gets no answer, and cleans up", _put(state, at, phase=REFUSED, files=files)
        return
    if not world.has(Guard.READ_BEFORE_RETRY):
        again, flags = CLEARED, driver.flags
    yield "publishes, and gets no answer", _put(state, at, phase=again, flags=flags | UNKNOWN, files=files)


def _certain(world: World, driver: Driver) -> bool:
    """`_Loop._discard_if_certain`: whether the files may be deleted."""
    unknown = driver.flags & UNKNOWN and world.has(Guard.DISCARD_IF_CERTAIN)
    return not unknown


def _refused(world: World, state: State, at: int) -> State:
    """A refusal, or one conflict too many: the exception that follows, after a discard or without."""
    return _put(state, at, phase=REFUSED) if _certain(world, state.drivers[at]) else _fails(world, state, at)


def _discards(world: World, state: State, at: int) -> tuple[str, State]:
    """`LakeCommitter.discard`. A failure of it is a kill just before."""
    driver = state.drivers[at]
    gone = _delete(world, state, at)
    if driver.phase == REFUSED:
        return "deletes its files, and raises", _fails(world, gone, at)
    return "deletes its files", _put(gone, at, phase=RESOLVED)


def _delete(world: World, state: State, at: int) -> State:
    driver = state.drivers[at]
    if driver.epoch in world.empty:
        return state
    gone = _put(state, at, files=driver.files | GONE)
    if world.has(Guard.UNIQUE_NAMES):
        return gone
    name = (driver.line, driver.epoch)
    return gone._replace(
        drivers=tuple(
            d._replace(files=d.files | GONE) if d.files != NONE and (d.line, d.epoch) == name else d
            for d in gone.drivers
        ),
        loose=tuple(a._replace(files=a.files | GONE) if (a.line, a.epoch) == name else a for a in gone.loose),
    )


def _acknowledges(world: World, state: State, at: int) -> tuple[str, State]:
    """The engine writes its progress log (Spark: ``commits/N``)."""
    driver = state.drivers[at]
    log = world.lines[driver.line].log
    acknowledged = list(state.acknowledged)
    acknowledged[log] = max(acknowledged[log], driver.epoch + 1)
    state = _let_go(state._replace(acknowledged=tuple(acknowledged)), at)
    phase = ENDED if world.lines[driver.line].run is None else NEXT
    return f"acknowledges epoch {driver.epoch}", _put(state, at, epoch=driver.epoch + 1, phase=phase)


def _fails(world: World, state: State, at: int) -> State:
    """The call raised, or the process died. What the engine may then do needs a step of its own only where it may
    take an abort for a fact; else the attempt is of nobody, and the engine starts anew."""
    if state.drivers[at].files != NONE and not world.has(Guard.ABORT_IS_A_HINT):
        return _put(state, at, phase=FAILED, flags=0)
    return _gives_up(world, state, at)


def _after_a_failure(world: World, state: State, at: int) -> Steps:
    """`TieringRound.abort`, or a restart from the log."""
    if not world.has(Guard.ABORT_IS_A_HINT):
        yield "is told to abort, and deletes its files", _gives_up(world, _delete(world, state, at), at)
    yield "is given up by the engine", _gives_up(world, state, at)


def _confirms(world: World, state: State, at: int) -> tuple[str, State]:
    """`TieringRound.confirm_done`."""
    driver = state.drivers[at]
    if not world.has(Guard.CONFIRM_DONE):
        return f"takes epoch {driver.epoch} for done", _put(state, at, phase=RESOLVED)
    if not state.lost and ruling(world, state.mark, driver.line, driver.epoch) == "done":
        return f"confirms that epoch {driver.epoch} is there", _put(state, at, phase=RESOLVED)
    return "finds that the epoch is gone (TableChanged)", _put(state, at, phase=DOWN)


def _gives_up(world: World, state: State, at: int) -> State:
    batch = world.lines[state.drivers[at].line].run is None
    return _put(_let_go(state, at), at, phase=ENDED if batch else DOWN, flags=0)


def _let_go(state: State, at: int) -> State:
    """Nobody holds the driver's attempt any more."""
    driver = state.drivers[at]
    if driver.files == NONE:
        return state
    attempt = Attempt(driver.line, driver.epoch, driver.files)
    return _put(state, at, files=NONE)._replace(loose=(*state.loose, attempt))
