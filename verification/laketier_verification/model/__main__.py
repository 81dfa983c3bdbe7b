"""``python -m laketier_verification.model``: explore the protocol, and the protocol without each of its guards. Exits 1
when the protocol breaks an invariant, or when a guard is removed and nothing happens that should."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from laketier_verification.model.explore import Exploration, explore
from laketier_verification.model.guards import REDUNDANT, Guard, Invariant
from laketier_verification.model.report import document, show_guards, show_trace, show_worlds
from laketier_verification.model.worlds import FULL, WORLDS, World, world_without


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m laketier_verification.model", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the wider bounds as well: some minutes")
    parser.add_argument("--world", action="append", metavar="NAME", help="this world only; may be repeated")
    parser.add_argument("--without", metavar="GUARD", help="print what goes wrong without this guard")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and traces to FILE")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if arguments.without:
        guard = Guard[arguments.without.upper().replace("-", "_")]
        show_trace(console, explore(world_without(guard)))
        return 0
    chosen = [w for w in (*WORLDS, *(FULL if arguments.full else ())) if w.name in (arguments.world or [w.name])]
    worlds = [_explored(console, world) for world in chosen]
    show_worlds(console, worlds)
    for exploration in worlds:
        if exploration.found:
            show_trace(console, exploration)
    guards = [] if arguments.world else [_explored(console, world_without(guard)) for guard in Guard]
    if guards:
        show_guards(console, guards)
        console.print("asserted: " + "; ".join(f"{i.name}: {i.value}" for i in Invariant), highlight=False)
    if arguments.json:
        figures = {"worlds": [document(e) for e in worlds], "guards": [document(e) for e in guards]}
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    unneeded = {guard for e in guards for guard in e.world.without if e.found is None}
    return int(any(e.found for e in worlds) or bool(guards and unneeded != REDUNDANT))


def _explored(console: Console, world: World) -> Exploration:
    if console.is_terminal:
        console.print(f"exploring {world.name} …", end="\r", highlight=False)
    return explore(world, progress=world.progresses and not world.without)


if __name__ == "__main__":
    sys.exit(main())
