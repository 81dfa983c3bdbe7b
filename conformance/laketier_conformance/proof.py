"""What a run shows of one format: its results, the verdict on them and the report."""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from laketier.registry import installed_formats, load_format
from laketier.spi import Feature, LakeStoragePlugin, PluginError, support_of, unknown_features
from laketier_conformance import failures
from laketier_conformance.harness import supplied_for
from laketier_conformance.shown import FAILED, FULL, NOT_SHOWN, REFUSED, shown
from laketier_conformance.verdict import CONFORMANT, PARTIAL, Result, Verdict, judge
from laketier_conformance.versions import versions
from laketier_conformance.words import plainly

REPORT = 2
"""The version of reports. A key that is new is none; a key that is gone, or means something else, is."""


class Proof:
    """The results of one format, and what follows from them."""

    def __init__(
        self,
        name: str,
        lanes: tuple[str, ...],
        expected: Collection[str],
        options: tuple[str, ...] = (),
        schedules: int = 20,
        chosen: Collection[str] = (),
    ) -> None:
        self._chosen = chosen
        self._options, self._schedules = options, schedules
        self._began = datetime.now(UTC)
        self._lanes = lanes
        self._expected = expected
        self.plugin = _load(name)
        (self._offer,) = [offer for offer in installed_formats() if offer.name == name]
        self.results: dict[str, Result] = {}
        self.verdict: Verdict | None = None
        self.left: set[str] = set()
        """The tests that were left to other formats of the run."""
        self.of_chosen: Verdict | None = None
        """The same for the tests that were asked for, by name or by turns: no verdict on the format."""

    def add(self, test: str, report: pytest.TestReport, refused: str | None) -> None:
        """Take the report of one phase of a test."""
        self.results.setdefault(test, Result(test)).add(report, refused)

    def close(self, exit_status: int, underway: Collection[str] = ()) -> Verdict:
        """Judge. ``exit_status`` is the run's, which a failure of any of its formats raises. ``underway`` are the tests
        that had begun when it ended."""
        self.verdict = judge(self.results.values(), self._expected, exit_status, underway)
        if self._chosen or self.left:
            self.of_chosen = judge(self.results.values(), self._asked, exit_status, underway)
        if not (self._asked or self.results) and exit_status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            # Others of the run took all that was asked for by name. That no test was run is no failure then.
            self.verdict = Verdict(PARTIAL, ("not run: each test that was asked for was left to other formats",), {})
            self.of_chosen = replace(self.verdict, name=CONFORMANT)
        return self.verdict

    @property
    def _asked(self) -> list[str]:
        return [test for test in self._chosen or self._expected if test not in self.left]

    @property
    def as_asked(self) -> bool:
        """The format is conformant; or of the tests that were asked for all ran that could be interposed here, and none
        failed."""
        judged = self.of_chosen or self.verdict
        return judged is not None and judged.conformant

    def report(self) -> dict[str, Any]:
        """The report as JSON's own types. Its words are plain, whoever chose them."""
        assert self.verdict is not None
        results = {name: self._plain(name) for name in sorted(self.results)}
        interposed, places = Counter[str](), Counter[str]()
        unseen, strides = dict[str, None](), dict[str, None]()
        for result in self.results.values():
            interposed.update(result.effects)
            places.update(result.places)
            unseen.update(result.unseen)
            strides.update(result.strides)
        document = {
            "report": REPORT,
            "format": self.plugin.identifier,
            "plugin": f"{self._offer.distribution}=={self._offer.version}",
            "suite": f"laketier=={importlib.metadata.version('laketier')}",
            "versions": versions(self._offer.distribution),
            "at": self._began.isoformat(timespec="seconds"),
            "seconds": round(sum(result.seconds for result in self.results.values()), 1),
            "seeds": {"schedules": [0, self._schedules - 1]},
            "options": [option for option in self._options if not option.startswith("--lake-warehouse=")],
            "lanes": list(self._lanes),
            "delivery": self.plugin.delivery.value,
            "features": {
                feature.value: "full" if support.full else f"unsupported: {support.reason}"
                for feature in Feature
                for support in [support_of(self.plugin.features, feature)]
            },
            "shown": shown(self.plugin, self.results.values(), self.verdict.unproven),
            "unknown_features": list(unknown_features(self.plugin.features)),
            "interposed": dict(sorted(interposed.items())),
            "places": dict(sorted(places.items())),
            "not_interposed": list(unseen),
            "strides": list(strides),
            "verdict": self.verdict.name,
            "conformant": self.verdict.conformant,
            "as_asked": self.as_asked,
            "why": list(self.verdict.why),
            "unproven": self.verdict.unproven,
            "results": results,
        }
        told: dict[str, Any] = plainly(document)
        return told

    def _plain(self, name: str) -> dict[str, Any]:
        document = self.results[name].plain()
        if document["outcome"] == "failed":
            document |= failures.plain(self.plugin.identifier, name, self._options)
        return document

    def write(self, file: Path) -> None:
        """Write the report."""
        put(file, json.dumps(self.report(), indent=1) + "\n")

    def write_page(self, file: Path) -> None:
        """Write the report to look at."""
        from laketier_conformance.page import page

        put(file, page(self.report()))

    def tell(self, terminalreporter: Any, explain: bool = False) -> None:
        """Print the verdict and what led to it. ``explain`` failures here, where pytest was told to print none."""
        if self.verdict is None:
            return
        report = self.report()
        terminalreporter.section(f"conformance of {self.plugin.identifier}")
        counts = Counter(result.outcome for result in self.results.values())
        told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts)) or "no tests"
        terminalreporter.line(f"{told}, in {report['seconds']} s of all processes")
        terminalreporter.line(f"  delivery: {report['delivery']}")
        for how in (FULL, REFUSED, NOT_SHOWN, FAILED):
            features = [feature for feature, each in report["shown"].items() if each == how]
            if features and counts and not (self.of_chosen and how == NOT_SHOWN):
                terminalreporter.line(f"  {how}: {', '.join(features)}")
        if report["interposed"]:
            effects = ", ".join(f"{count} {kind}" for kind, count in report["interposed"].items())
            terminalreporter.line(f"  interposed: {effects}")
            where = ", ".join(f"{count} on {place}" for place, count in report["places"].items())
            if where:
                terminalreporter.line(f"  of these: {where}")
        for line in report["strides"]:
            terminalreporter.line(f"  interposed in part: {line}")
        for line in (self.of_chosen or self.verdict).why:
            terminalreporter.line(f"  {plainly(line)}")
        for test in sorted(name for name, result in self.results.items() if explain and result.outcome == "failed"):
            told = failures.explained(self.plugin.identifier, test, self.results[test].detail, self._options)
            for line in (test, *told.splitlines()):
                terminalreporter.line(f"  {plainly(line)}")
        for feature, reason in report["unproven"].items():
            terminalreporter.line(f"  declared, not shown: {feature} ({reason})")
        told = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
        terminalreporter.line(f"  with {told}")
        terminalreporter.line(f"  run with {' '.join(report['options'])}")
        said = self.verdict.name
        if self.as_asked and not self.verdict.conformant:
            said = f"none, as only {len(self._asked)} of {len(self._expected)} tests were asked for, and none failed"
        terminalreporter.line(f"verdict: {said}", bold=True, green=self.as_asked)


def put(file: Path, text: str) -> None:
    """As a whole or not at all, also beside another run that writes the same file."""
    written = file.with_name(f".laketier-{token_hex(8)}")  # the file's own name may be as long as names can be
    try:
        written.write_text(text, encoding="utf-8")
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)


def _load(name: str) -> LakeStoragePlugin:
    try:
        plugin = load_format(name)
        supplied_for(name)
    except PluginError as error:
        raise pytest.UsageError(f"--lake-format={name}: {error}") from error
    return plugin
