"""Breadth first through all states of a world, with the invariants asserted in each."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from laketier_verification.model.drivers import driver_steps, loose_steps
from laketier_verification.model.guards import Invariant
from laketier_verification.model.others import leaks, other_steps
from laketier_verification.model.state import DOWN, ENDED, GONE, HEAD, IDLE, NEXT, NONE, PAST, State
from laketier_verification.model.table import canonical, initial, settle
from laketier_verification.model.worlds import World


@dataclass(frozen=True)
class Found:
    """A state in which an invariant does not hold, and the shortest way to it."""

    invariant: Invariant
    trace: tuple[str, ...]


@dataclass(frozen=True)
class Exploration:
    """``states``: distinct ones, symmetric ones counted once. ``depth``: the steps to the farthest of them."""

    world: World
    states: int
    transitions: int
    depth: int
    seconds: float
    found: Found | None


def steps(world: World, state: State) -> Iterator[tuple[str, State]]:
    """Every step that anybody can take. Drivers are named by their place."""
    for at in range(len(state.drivers)):
        for label, after in driver_steps(world, state, at):
            yield f"driver {'ABC'[at]} {label}", after
    yield from loose_steps(world, state)
    yield from other_steps(world, state)


def broken(world: World, state: State) -> Invariant | None:
    """The invariant that does not hold."""
    if state.breach:
        return Invariant[state.breach]
    epochs = world.epochs
    rows = state.rows
    batch = world.lines[0].run is None
    for driver in state.drivers:
        if driver.files != NONE and driver.files & GONE and driver.files & (HEAD | PAST):
            return Invariant.WHOLE
    for attempt in state.loose:
        if attempt.files & GONE and attempt.files & (HEAD | PAST):
            return Invariant.WHOLE
    before = True
    for epoch in range(epochs):
        visible = sum(rows[epoch::epochs])
        if max(rows[epoch::epochs]) > 1 or (visible > 1 and not batch):
            return Invariant.ONCE
        if epoch in world.empty or batch:
            continue
        if visible and not before:
            return Invariant.ORDER
        before = bool(visible)
    for line in world.lines:
        for epoch in range(state.acknowledged[line.log]):
            if epoch in world.empty or state.excused >> epoch & 1:
                continue
            if not rows[line.variant * epochs + epoch]:
                return Invariant.ACKNOWLEDGED
    at_rest = state.loose and state.collector == IDLE and all(d.phase in (DOWN, NEXT, ENDED) for d in state.drivers)
    return Invariant.LEAK if at_rest and world.maintained and leaks(world, state) else None


def explore(world: World, *, progress: bool = False) -> Exploration:
    """Visit every state of ``world``, or those up to the first that breaks an invariant. With ``progress`` also ask of
    each state whether all epochs of some log can still be acknowledged from there."""
    started = time.process_time()
    first = canonical(settle(world, initial(world)))
    index = {first: 0}
    states = [first]
    parents, depths = array("q", [-1]), array("l", [0])
    sources, targets = array("l"), array("l")
    transitions = 0
    found = None
    at = 0
    while at < len(states) and found is None:
        for _, raw in steps(world, states[at]):
            transitions += 1
            invariant = broken(world, raw)
            if invariant is not None:
                found = Found(invariant, narrate(world, _path(states, parents, at), invariant))
                break
            after = canonical(settle(world, raw))
            known = index.setdefault(after, len(states))
            if known == len(states):
                states.append(after)
                parents.append(at)
                depths.append(depths[at] + 1)
            if progress:
                sources.append(at)
                targets.append(known)
        at += 1
    if progress and found is None:
        lost = _unfinishable(world, states, sources, targets)
        if lost is not None:
            found = Found(Invariant.PROGRESS, narrate(world, _path(states, parents, lost), None))
    return Exploration(world, len(states), transitions, max(depths), time.process_time() - started, found)


def narrate(world: World, path: list[State], ends: Invariant | None) -> tuple[str, ...]:
    """The steps along a path of canonical states, in which each driver keeps its name, and the one that ends it."""
    state = settle(world, initial(world))
    labels = []
    for target in path[1:]:
        taken = ((label, settle(world, raw)) for label, raw in steps(world, state) if broken(world, raw) is None)
        label, state = next(step for step in taken if canonical(step[1]) == target)
        labels.append(label)
    if ends is not None:
        labels.append(next(label for label, raw in steps(world, state) if broken(world, raw) is ends))
    return tuple(labels)


def _path(states: list[State], parents: array[int], at: int) -> list[State]:
    path = []
    while at >= 0:
        path.append(states[at])
        at = parents[at]
    return path[::-1]


def _unfinishable(world: World, states: list[State], sources: array[int], targets: array[int]) -> int | None:
    """The first state from which no log can be acknowledged to its end: backwards from those where one is."""
    before: list[list[int]] = [[] for _ in states]
    for source, target in zip(sources, targets, strict=True):
        before[target].append(source)
    open_ = [at for at, state in enumerate(states) if max(state.acknowledged) == world.epochs]
    can = bytearray(len(states))
    for at in open_:
        can[at] = 1
    while open_:
        for source in before[open_.pop()]:
            if not can[source]:
                can[source] = 1
                open_.append(source)
    at = can.find(0)
    return None if at < 0 else at
