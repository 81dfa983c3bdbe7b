"""What a run shows of one subject, a format or a source, and how that is told."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from laketier.registry import InstalledPlugin
from laketier_conformance.verdict import Result, Verdict
from laketier_conformance.words import plainly


class Proven(ABC):
    """The results of one subject, the verdict on them, and the report.

    Attributes:
        results: By the name of a test, what became of it.
        verdict: That on the subject. None before the run is closed.
        of_chosen: The same for the tests that were asked for: no verdict on the subject.
    """

    def __init__(self, offer: InstalledPlugin, options: tuple[str, ...]) -> None:
        self._offer, self._options = offer, options
        self._began = datetime.now(UTC)
        self.results: dict[str, Result] = {}
        self.verdict: Verdict | None = None
        self.of_chosen: Verdict | None = None

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """The report as JSON's own types. Its words are plain, whoever chose them."""

    @abstractmethod
    def page(self) -> str:
        """The report as a page to look at."""

    @abstractmethod
    def explained(self, test: str) -> str:
        """A failure, for a terminal."""

    @property
    def as_asked(self) -> bool:
        """The subject is conformant; or of the tests that were asked for all ran that could, and none failed."""
        judged = self.of_chosen or self.verdict
        return judged is not None and judged.conformant

    def write(self, file: Path) -> None:
        """Write the report."""
        _put(file, json.dumps(self.report(), indent=1) + "\n")

    def write_page(self, file: Path) -> None:
        """Write the report as a page to look at."""
        _put(file, self.page())

    def _tell_counts(self, terminalreporter: Any, report: dict[str, Any]) -> None:
        counts = Counter(result.outcome for result in self.results.values())
        told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts)) or "no tests"
        terminalreporter.line(f"{told}, in {report['seconds']} s of all processes")

    def _tell_failures(self, terminalreporter: Any) -> None:
        for test in sorted(name for name, result in self.results.items() if result.outcome == "failed"):
            for line in (test, *self.explained(test).splitlines()):
                terminalreporter.line(f"  {plainly(line)}")


def _put(file: Path, text: str) -> None:
    """As a whole or not at all, also beside another run that writes the same file."""
    written = file.with_name(f".laketier-{token_hex(8)}")  # the file's own name may be as long as names can be
    try:
        written.write_text(text, encoding="utf-8")
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)
