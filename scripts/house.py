"""Draws the house: each room's modules, lines and imports of other rooms, as they stand in some commit.

    python scripts/house.py [COMMIT] [--edges]

Prints Markdown: a Mermaid drawing of the rooms of `laketier`, where an arrow that longer ways imply is left out, a
table of all rooms and of the folders beside them, and the cycles: of modules, and of siblings, which are the modules
and packages of one package. The modules' own imports tell, through the graph that import-linter uses. Imports inside of
functions and for types count.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import grimp

Edges = Counter[tuple[str, str]]

DISTRIBUTIONS = ("core", "conformance", "plugins", "verification", "tests", "benchmarks", "examples", "scripts")


def checked_out(commit: str, folder: Path) -> None:
    archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def lines_of(files: Iterable[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def rooms_of(package: Path) -> dict[str, list[Path]]:
    """The files of each room: a folder, or a module beside the folders."""
    rooms: dict[str, list[Path]] = {}
    for file in sorted(package.rglob("*.py")):
        first = file.relative_to(package).parts[0]
        rooms.setdefault(first.removesuffix(".py"), []).append(file)
    rooms.pop("__init__", None)
    return rooms


def imports_of(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    return sorted(
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    )


def siblings(imports: Iterable[tuple[str, str]], parent: str) -> Edges:
    """The imports between the children of the package ``parent``, each with all that is inside of it."""
    edges: Edges = Counter()
    start = f"{parent}."
    for pair in imports:
        ends = [name.removeprefix(start).split(".")[0] for name in pair if name.startswith(start)]
        if len(ends) == 2 and ends[0] != ends[1]:
            edges[ends[0], ends[1]] += 1
    return edges


def strongly_connected(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of more than one node that reach each other."""
    after: dict[str, set[str]] = {node: set() for node in nodes}
    for start, end in edges:
        after.setdefault(start, set()).add(end)
        after.setdefault(end, set())

    def reach(start: str) -> set[str]:
        found, left = set(), [start]
        while left:
            for end in after[left.pop()] - found:
                found.add(end)
                left.append(end)
        return found

    closure = {node: reach(node) for node in after}
    groups = {frozenset(other for other in closure[node] if node in closure[other]) for node in after}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def drawn(edges: Edges) -> list[tuple[str, str]]:
    """The arrows that no longer way implies."""
    kept = sorted(edges)
    for edge in sorted(edges):
        others = [other for other in kept if other != edge]
        found, left = set(), [edge[0]]
        while left:
            here = left.pop()
            for start, end in others:
                if start == here and end not in found:
                    found.add(end)
                    left.append(end)
        if edge[1] in found and edge[0] not in found:
            kept = others
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--edges", action="store_true", help="list all arrows, with the imports that each stands for")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checked_out(asked.commit, folder)
        package = folder / "core" / "laketier"
        packages = [file.parent for file in sorted(folder.glob("[cp]*/**/laketier*/__init__.py"))]
        sys.path[:0] = sorted({str(each.parent) for each in packages})
        graph = grimp.build_graph(*(each.name for each in packages), cache_dir=None)
        imports = imports_of(graph)
        rooms = rooms_of(package)
        edges = siblings(imports, "laketier")
        lines = {room: lines_of(files) for room, files in rooms.items()}
        print(f"{len(rooms)} rooms, {sum(map(len, rooms.values()))} modules, {sum(lines.values()):,} lines, ", end="")
        print(f"{len(edges)} arrows between rooms that stand for {edges.total()} imports.\n")
        print("```mermaid\nflowchart TD")
        for room in rooms:
            print(f'  {room}["{room}<br/>{lines[room]:,} lines"]')
        for start, end in drawn(edges):
            print(f"  {start} --> {end}")
        print("```\n")
        print("| room | modules | lines | imports | is imported by |\n|---|---|---|---|---|")
        for room, files in rooms.items():
            below = sum(start == room for start, _ in edges)
            above = sum(end == room for _, end in edges)
            print(f"| `{room}` | {len(files)} | {lines[room]:,} | {below} rooms | {above} rooms |")
        print("\n| folder | Python files | lines |\n|---|---|---|")
        for part in DISTRIBUTIONS:
            found = list((folder / part).rglob("*.py"))
            if found:
                print(f"| `{part}` | {len(found)} | {lines_of(found):,} |")
        cycles = strongly_connected(graph.modules, imports)
        parents = sorted({module.rpartition(".")[0] for module in graph.modules} - {""})
        among_siblings = {parent: strongly_connected((), siblings(imports, parent)) for parent in parents}
        print(f"\nCycles of modules: {len(cycles)}. Cycles of siblings: {sum(map(len, among_siblings.values()))}.\n")
        for cycle in cycles:
            print("- " + ", ".join(f"`{each}`" for each in cycle))
        for parent, found in among_siblings.items():
            for cycle in found:
                print(f"- in `{parent}`: " + ", ".join(f"`{each}`" for each in cycle))
        if asked.edges:
            print("\n| from | to | imports |\n|---|---|---|")
            for (start, end), count in sorted(edges.items()):
                print(f"| `{start}` | `{end}` | {count} |")


if __name__ == "__main__":
    main()
