"""``python -m laketier_verification.clocks``: wrong clocks and all formats, as a table. Exit code 1 when a row is lost
or there twice."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from laketier.registry import format_names
from laketier_conformance.host_clocks import MISSING, shifting_library
from laketier_verification.clocks.matrix import DAYS, shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m laketier_verification.clocks", description=__doc__)
    parser.add_argument("formats", nargs="*", default=list(format_names()))
    formats = parser.parse_args().formats
    if shifting_library() is None:
        print(MISSING, file=sys.stderr)
        return 2
    out = Table(
        "format", "rounds", "what became of them", "files collected", "lost", "twice", title=f"days off: {DAYS}"
    )
    results = []
    for name in formats:
        with tempfile.TemporaryDirectory() as folder:
            result = shown(name, Path(folder))
        results.append(result)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(result.outcomes.items()))
        counts = (result.removed, len(result.lost), len(result.doubled))
        out.add_row(name, str(sum(result.outcomes.values())), outcomes, *map(str, counts))
    Console(width=120).print(out)
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
