"""What was explored and found, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from laketier_verification.model.explore import Exploration
from laketier_verification.model.guards import REDUNDANT, Guard


def bound(exploration: Exploration) -> str:
    """The bounds of a world, in words."""
    world = exploration.world
    actors = [
        f"{len(world.drivers)} driver" + "s" * (len(world.drivers) > 1),
        f"{world.epochs} epoch" + "s" * (world.epochs > 1),
    ]
    others = (("maintenance", world.maintained), ("schema changes", world.altered), ("a restore", bool(world.restored)))
    return ", ".join(actors + [name for name, present in others if present])


def show_worlds(console: Console, explorations: Sequence[Exploration]) -> None:
    """The protocol as it is."""
    table = Table("world", "bound", "states", "transitions", "depth", "CPU seconds", "violated", title="the protocol")
    for e in explorations:
        violated = "nothing" if e.found is None else e.found.invariant.name
        counts = (f"{e.states:,}", f"{e.transitions:,}", str(e.depth), f"{e.seconds:.1f}")
        table.add_row(e.world.name, bound(e), *counts, violated)
    console.print(table)


def show_guards(console: Console, explorations: Sequence[Exploration]) -> None:
    """The protocol without one guard each."""
    table = Table("without", "what it says", "world", "violated", "steps", "states", title="each guard removed")
    for e in explorations:
        (guard,) = e.world.without
        violated = ("covered by another" if guard in REDUNDANT else "NOTHING") if e.found is None else ""
        length = "" if e.found is None else str(len(e.found.trace))
        violated = violated if e.found is None else e.found.invariant.name
        table.add_row(guard.name, guard.value, e.world.name, violated, length, f"{e.states:,}")
    console.print(table)


def show_trace(console: Console, exploration: Exploration) -> None:
    """The shortest way to what broke, step by step."""
    found = exploration.found
    guards = ", ".join(guard.value for guard in exploration.world.without)
    if guards:
        console.print(f'Without "{guards}", in the world "{exploration.world.name}":', highlight=False)
    if found is None:
        console.print(f"nothing is violated in {exploration.states:,} states", highlight=False)
        return
    for number, step in enumerate(found.trace, 1):
        console.print(f"{number:3}  {step}", highlight=False, soft_wrap=True)
    console.print(f"     VIOLATED {found.invariant.name}: {found.invariant.value}", highlight=False, soft_wrap=True)


def document(exploration: Exploration) -> dict[str, Any]:
    """For machines."""
    found = exploration.found
    guards: list[Guard] = sorted(exploration.world.without, key=lambda guard: guard.name)
    return {
        "world": exploration.world.name,
        "about": exploration.world.about,
        "bound": bound(exploration),
        "without": [guard.name for guard in guards],
        "states": exploration.states,
        "transitions": exploration.transitions,
        "depth": exploration.depth,
        "seconds": round(exploration.seconds, 3),
        "violated": None if found is None else found.invariant.name,
        "trace": None if found is None else list(found.trace),
    }
