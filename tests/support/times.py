"""Where the time of the tests went: printed at the end of a run that writes ``--junitxml``, over all such files beside
its own, so that `make test` ends with one list for the suite and the tests."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

BUDGET_MINUTES = 20
"""Of `make test` on two cores. CONTRIBUTING.md says it too."""
BEGUN = "begun"
"""The file that `make test` touches when it begins."""
SHOWN = 20


class Timed(NamedTuple):
    """One test: its seconds with all its fixtures, and the piece that it ran in."""

    seconds: float
    piece: str
    name: str


def timed(folder: Path) -> Iterator[Timed]:
    """The tests of all pieces that ran since `make test` began."""
    begun = _begun(folder)
    for file in sorted(folder.glob("*.xml")):
        if begun is None or file.stat().st_mtime >= begun:
            for case in ET.parse(file).getroot().iter("testcase"):
                name = f"{case.get('classname', '')}::{case.get('name', '')}"
                yield Timed(float(case.get("time", 0)), file.stem, name)


def tell(folder: Path, terminalreporter: Any) -> None:
    """Print the slowest tests, and the time of everything against the budget."""
    tests = sorted(timed(folder), reverse=True)
    pieces = ", ".join(sorted({test.piece for test in tests}))
    terminalreporter.section(f"slowest {SHOWN} of {pieces}")
    for test in tests[:SHOWN]:
        terminalreporter.line(f"{test.seconds:8.1f} s  {test.piece}: {test.name}")
    begun = _begun(folder)
    if begun is None:
        return
    minutes = (time.time() - begun) / 60
    line = f"make test took {minutes:.1f} minutes so far; the budget is {BUDGET_MINUTES}"
    if minutes > BUDGET_MINUTES:
        terminalreporter.line(f"WARNING: {line}. See CONTRIBUTING.md, Time of the tests.", yellow=True, bold=True)
    else:
        terminalreporter.line(line)


def _begun(folder: Path) -> float | None:
    file = folder / BEGUN
    return file.stat().st_mtime if file.exists() else None
