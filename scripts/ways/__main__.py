"""Prints the way of the data through the modules, as a program takes it: which module called which for the first time.

    python scripts/ways PROGRAM.py [ARGUMENT ...]

Runs the program with its processes, Spark's Python workers included, and notes in each the first call into every module
of laketier and of its plugins, with the module that it came from. Prints a list for the program and one for the
processes that it began, in order of those calls: indented below the module that called. A module that was only imported
is not on the way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HOOK = Path(__file__).parent / "hook"


def printed(entered: dict[str, str]) -> list[str]:
    """The calls as an indented list."""
    below: dict[str, list[str]] = {}
    for name, caller in entered.items():
        below.setdefault(caller, []).append(name)
    lines: list[str] = []

    def add(caller: str, depth: int) -> None:
        for name in below.get(caller, ()):
            lines.append(f"{'  ' * depth}- `{name}`")
            add(name, depth + 1)

    add("", 0)
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = os.pathsep.join(filter(None, (str(HOOK), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, *sys.argv[1:]], env={**os.environ, "PYTHONPATH": path, "WAYS_FOLDER": name}
        )
        if process.wait():
            raise SystemExit(f"the program ended with {process.returncode}")
        program: dict[str, str] = {}
        others: dict[str, str] = {}
        for file in sorted(Path(name).glob("*.json"), key=lambda each: each.stat().st_mtime_ns):
            entered = json.loads(file.read_text())
            if file.stem == str(process.pid):
                program = entered
            else:
                others = {**entered, **others}
        for role, entered in (("The program", program), ("Other processes", others)):
            if entered:
                print(f"\n{role}: {len(entered)} modules\n")
                print("\n".join(printed(entered)))


if __name__ == "__main__":
    main()
