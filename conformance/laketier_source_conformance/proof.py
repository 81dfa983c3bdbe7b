"""What a run shows of one source: its results, the verdict on them and the report."""

from __future__ import annotations

import importlib.metadata
import shlex
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from laketier.registry import installed_sources, load_source
from laketier.spi import PluginError
from laketier_conformance.failures import command_of, lines_of
from laketier_conformance.proven import Proven
from laketier_conformance.verdict import PARTIAL, Result, Verdict, judge
from laketier_conformance.versions import versions
from laketier_conformance.words import plainly
from laketier_source_conformance.harness import harness_of
from laketier_source_conformance.rules import rule_of

REPORT = 1
"""The version of reports. A key that is new is none; a key that is gone, or means something else, is."""
NOT_SHOWN = "not shown"


def again(source: str, test: str, options: tuple[str, ...] = ()) -> str:
    """The command that runs one test again, for a shell."""
    return command_of(("--source", source), test, [shlex.quote(option) for option in options])


class SourceProof(Proven):
    """The results of one source, and what follows from them."""

    def __init__(
        self,
        name: str,
        harness: str | None,
        expected: Collection[str],
        chosen: Collection[str],
        options: tuple[str, ...] = (),
    ) -> None:
        self._name, self._expected, self._chosen = name, expected, chosen
        try:
            self.plugin = load_source(name)
            self.harness = harness_of(name, harness)
        except PluginError as error:
            raise pytest.UsageError(f"--log-source={name}: {error}") from error
        (offer,) = [offer for offer in installed_sources() if offer.name == name]
        super().__init__(offer, options)

    def add(self, test: str, report: pytest.TestReport, refused: object, not_shown: object) -> None:
        """Take the report of one phase of a test."""
        result = self.results.setdefault(test, Result(test))
        result.add(report, None if refused is None else str(refused))
        if not_shown is not None and result.outcome == "passed":
            result.outcome, result.detail = NOT_SHOWN, str(not_shown)

    def close(self, exit_status: int, underway: Collection[str] = ()) -> None:
        """Judge. ``exit_status`` is the run's. ``underway`` are the tests that had begun when it ended."""
        self.verdict = self._judged(self._expected, exit_status, underway)
        if self._chosen:
            self.of_chosen = judge(self.results.values(), self._chosen, exit_status, underway)

    def _judged(self, expected: Collection[str], exit_status: int, underway: Collection[str]) -> Verdict:
        """As of a format; at most partial where the harness left something out that the system may have."""
        found = judge(self.results.values(), expected, exit_status, underway)
        why = self._left_out()
        return replace(found, name=PARTIAL if found.conformant else found.name, why=found.why + why) if why else found

    def _left_out(self) -> tuple[str, ...]:
        left = Counter(result.detail for result in self.results.values() if result.outcome == NOT_SHOWN)
        return tuple(f"{NOT_SHOWN}: {detail} ({count} tests)" for detail, count in left.items())

    def report(self) -> dict[str, Any]:
        assert self.verdict is not None
        told: dict[str, Any] = plainly(
            {
                "report": REPORT,
                "source": self._name,
                "plugin": f"{self._offer.distribution}=={self._offer.version}",
                "suite": f"laketier=={importlib.metadata.version('laketier')}",
                "versions": versions(self._offer.distribution),
                "at": self._began.isoformat(timespec="seconds"),
                "seconds": round(sum(result.seconds for result in self.results.values()), 1),
                "options": list(self._options),
                "cannot": dict(self.harness.cannot),
                "verdict": self.verdict.name,
                "conformant": self.verdict.conformant,
                "as_asked": self.as_asked,
                "why": list(self.verdict.why),
                "results": {name: self._plain(name) for name in sorted(self.results)},
            }
        )
        return told

    def _plain(self, name: str) -> dict[str, Any]:
        document = self.results[name].plain()
        if document["outcome"] == "failed":
            rule = rule_of(name)
            document |= {} if rule is None else {"rule": rule.id, "guide": rule.guide}
            document["again"] = again(self._name, name, self._options)
        return document

    def page(self) -> str:
        from laketier_source_conformance.page import page

        return page(self.report())

    def explained(self, test: str) -> str:
        return lines_of(rule_of(test), self.results[test].detail, again(self._name, test, self._options))

    def tell(self, terminalreporter: Any, explain: bool = False) -> None:
        """Print the verdict and what led to it. ``explain`` failures here, where pytest was told to print none."""
        if self.verdict is None:
            return
        report = self.report()
        terminalreporter.section(f"conformance of the source {self._name}")
        self._tell_counts(terminalreporter, report)
        for line in self.verdict.why if self.of_chosen is None else (*self.of_chosen.why, *self._left_out()):
            terminalreporter.line(f"  {plainly(line)}")
        refused = dict.fromkeys(result.detail for result in self.results.values() if result.outcome == "refused")
        for line in refused:
            terminalreporter.line(f"  refused: {plainly(line)}")
        if explain:
            self._tell_failures(terminalreporter)
        terminalreporter.line(f"  with {', '.join(f'{name} {each}' for name, each in report['versions'].items())}")
        said = self.verdict.name
        if self.of_chosen is not None and self.as_asked and not self.verdict.conformant:
            said = f"none, as only {len(self._chosen)} of {len(self._expected)} tests were asked for, and none failed"
        terminalreporter.line(f"verdict: {said}", bold=True, green=self.as_asked)
