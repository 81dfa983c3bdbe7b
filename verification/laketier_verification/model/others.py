"""The steps of everybody else: a foreign committer, a compactor, an expirer, the orphan collector, people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from laketier_verification.model.guards import Guard
from laketier_verification.model.state import (
    AGED,
    CLEARED,
    CUT,
    DISCARDS,
    FENCED,
    FLIGHT,
    FREED,
    FRESH,
    GONE,
    HEAD,
    IDLE,
    LANDED,
    LISTABLE,
    LISTED,
    LISTS,
    MARKED,
    NONE,
    OLD,
    PAST,
    RESOLVED,
    SAVED_HEAD,
    SAVED_MARKED,
    SAVED_OLD,
    SELECTED,
    UNFIT,
    Saved,
    State,
)
from laketier_verification.model.table import commit
from laketier_verification.model.worlds import World

Steps = Iterator[tuple[str, State]]
Change = Callable[[int], int]


def other_steps(world: World, state: State) -> Steps:
    """All that anybody but a driver may do now."""
    flags = [d.files for d in state.drivers if d.files != NONE] + [a.files for a in state.loose]
    if any(d.flags & FRESH for d in state.drivers) or any(f & FLIGHT for f in flags):
        yield "another pipeline commits", commit(world, state)
    if world.maintained:
        if any(f & HEAD for f in flags):
            yield "the compactor rewrites what is visible", commit(world, _all(state, _compacted))
        yield from _expires(world, state, flags)
        yield from _collects(world, state)
    if world.altered and any(not f & UNFIT for f in flags):
        yield "somebody changes the schema", commit(world, _all(state, lambda files: files | UNFIT))
    if world.restored and not state.restored:
        yield from _restores(world, state)


def _all(state: State, change: Change) -> State:
    return state._replace(
        drivers=tuple(d if d.files == NONE else d._replace(files=change(d.files)) for d in state.drivers),
        loose=tuple(a._replace(files=change(a.files)) for a in state.loose),
    )


def _compacted(files: int) -> int:
    return files & ~HEAD | PAST if files & HEAD else files


def _expires(world: World, state: State, flags: list[int]) -> Steps:
    """Old snapshots are dropped, and the files that only they had. Not a commit, as formats allow: whoever is about to
    publish stays entitled to. (Where it is one, it is like any foreign commit too.)"""
    batch = any(line.run is None for line in world.lines)
    forgets = not world.has(Guard.WATERMARK_SURVIVES) and state.mark is not None
    frees = not world.has(Guard.NAMES_STAY_TAKEN)

    def expired(files: int) -> int:
        files &= ~LANDED
        if not files & PAST or files & SAVED_HEAD:
            return files
        return files & ~PAST if files & HEAD else files & ~PAST | GONE

    if not (forgets or frees or batch or any(f & PAST for f in flags)):
        return
    state = _all(state, expired)
    if forgets:
        state = state._replace(mark=None)
    if batch or frees:
        state = state._replace(
            drivers=tuple(
                d._replace(
                    flags=d.flags
                    | (CUT if batch and d.files != NONE else 0)
                    | (FREED if frees and d.phase == CLEARED and not d.flags & FRESH else 0)
                )
                for d in state.drivers
            )
        )
    yield "old snapshots expire", state


def _collects(world: World, state: State) -> Steps:
    """`laketier.maintenance.orphans.collect_orphans`. Any attempt may be older than the grace period. Raising the
    horizon reads nothing that another commit could make untrue, so `set_watermark`'s loop is one step: the one that
    lands."""
    phase = state.collector
    if phase == IDLE:
        yield from _lists(world, state)
        return
    if phase == LISTS:
        raised = _raised(world, state) if world.has(Guard.HORIZON_FIRST) else state
        label = "the collector raises the horizon" if world.has(Guard.HORIZON_FIRST) else "the collector goes on"
        yield label, raised._replace(collector=FENCED)
    elif phase == FENCED:
        yield "the collector lists again", _all(state, _listed_again(world))._replace(collector=SELECTED)
    else:
        deleted = _all(state, lambda files: files & ~(AGED | LISTED) | (GONE if files & LISTED else 0))
        yield "the collector deletes", deleted._replace(collector=IDLE)
    yield "the collector is killed", _all(state, lambda files: files & ~(AGED | LISTED))._replace(collector=IDLE)


def _lists(world: World, state: State) -> Steps:
    """`LakeMaintenance.orphans`: what no snapshot references. Where only what is listed can matter later, attempts that
    are older than the grace period and referenced are left out."""
    places = [(0, i) for i, d in enumerate(state.drivers) if d.files != NONE and d.epoch not in world.empty]
    places += [(1, i) for i, a in enumerate(state.loose) if a.epoch not in world.empty]

    def files_at(place: tuple[int, int]) -> int:
        kind, i = place
        return state.loose[i].files if kind else state.drivers[i].files

    if world.has(Guard.BOTH_LISTS):
        places = [place for place in places if not files_at(place) & LISTABLE]
    for count in range(1, len(places) + 1):
        for chosen in combinations(places, count):
            drivers, loose = list(state.drivers), list(state.loose)
            for kind, i in chosen:
                files = files_at((kind, i))
                files |= AGED | (0 if files & LISTABLE else LISTED)
                if kind:
                    loose[i] = loose[i]._replace(files=files)
                else:
                    drivers[i] = drivers[i]._replace(files=files)
            listed = state._replace(drivers=tuple(drivers), loose=tuple(loose), collector=LISTS)
            yield f"the collector lists the files of {_names(chosen)}", listed


def leaks(world: World, state: State) -> bool:
    """Whether a file stays for ever: a collector that goes through, with everything old enough, leaves one that no
    snapshot references. For states in which no driver holds an attempt."""
    for _, listed in _lists(world, state):
        state = listed  # the last is the one with all
    while state.collector != IDLE:
        state = next(_collects(world, state))[1]
    return any(not attempt.files & LISTABLE and attempt.epoch not in world.empty for attempt in state.loose)


def _names(chosen: tuple[tuple[int, int], ...]) -> str:
    return " and ".join("a dead driver" if kind else f"driver {'ABC'[i]}" for kind, i in chosen)


def _raised(world: World, state: State) -> State:
    """`raise_horizon`."""
    forgets = state.horizon_lost and not world.has(Guard.ROLLBACK_RAISES_HORIZON)
    keep = ~OLD if forgets else -1
    raised = _all(state, lambda files: files & keep | (OLD if files & AGED else 0))._replace(horizon_lost=False)
    return commit(world, raised) if world.has(Guard.HORIZON_IS_A_COMMIT) else raised


def _listed_again(world: World) -> Change:
    def change(files: int) -> int:
        if not files & AGED or not world.has(Guard.LIST_AGAIN):
            return files
        if files & LISTABLE:
            return files & ~LISTED
        return files if world.has(Guard.BOTH_LISTS) else files | LISTED

    return change


def _restores(world: World, state: State) -> Steps:
    """Somebody notes a snapshot, and restores it later. Where the format notices, the pipeline's next round is refused
    if its watermark changed in between (`RolledBack`), and attempts that were below the horizon stay refused."""
    if state.saved is None:

        def noted(files: int) -> int:
            saved = (SAVED_HEAD if files & HEAD else 0) | (SAVED_OLD if files & OLD else 0)
            return files | saved | (SAVED_MARKED if files & MARKED else 0)

        yield "somebody notes the current snapshot", _all(state, noted)._replace(saved=Saved(state.mark, state.rows))
        return
    noticed = world.restored == "noticed" and world.has(Guard.RESTORE_NOTICED)
    keeps_horizon = noticed and world.has(Guard.ROLLBACK_KEEPS_HORIZON)

    def back(files: int) -> int:
        old = files & OLD if keeps_horizon else (OLD if files & SAVED_OLD else 0)
        head = HEAD if files & SAVED_HEAD else 0
        past = PAST if files & (HEAD | PAST) else 0
        rest = files & ~(HEAD | PAST | OLD | MARKED | SAVED_HEAD | SAVED_OLD | SAVED_MARKED)
        return rest | old | head | past | (MARKED if files & SAVED_MARKED else 0)

    resolved = {driver.epoch for driver in state.drivers if driver.phase in (DISCARDS, RESOLVED)}
    staged = [driver.files for driver in state.drivers if driver.files != NONE]
    restored = _all(state, back)._replace(
        rows=state.saved.rows,
        mark=state.saved.mark,
        lost=noticed and state.mark != state.saved.mark,
        horizon_lost=noticed and any(files & OLD and not files & SAVED_OLD for files in staged),
        excused=sum(1 << e for e in range(world.epochs) if e in resolved or e < max(state.acknowledged)),
        saved=None,
        restored=True,
    )
    yield "somebody restores that snapshot", commit(world, restored)
