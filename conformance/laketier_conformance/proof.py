"""What a run shows of one format: its results, the verdict on them and the report."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from laketier.registry import installed_formats, load_format
from laketier.spi import Feature, LakeStoragePlugin, PluginError, support_of, unknown_features
from laketier_conformance import failures
from laketier_conformance.harness import supplied_for
from laketier_conformance.proven import Proven
from laketier_conformance.shown import FAILED, FULL, NOT_SHOWN, REFUSED, shown
from laketier_conformance.verdict import CONFORMANT, PARTIAL, Result, Verdict, judge
from laketier_conformance.versions import versions
from laketier_conformance.words import plainly

REPORT = 2
"""The version of reports. A key that is new is none; a key that is gone, or means something else, is."""


class Proof(Proven):
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
        self.plugin = _load(name)
        (offer,) = [offer for offer in installed_formats() if offer.name == name]
        super().__init__(offer, options)
        self._lanes, self._schedules = lanes, schedules
        self._expected, self._chosen = expected, chosen
        self.left: set[str] = set()
        """The tests that were left to other formats of the run."""

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

    def report(self) -> dict[str, Any]:
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

    def page(self) -> str:
        from laketier_conformance.page import page

        return page(self.report())

    def explained(self, test: str) -> str:
        return failures.explained(self.plugin.identifier, test, self.results[test].detail, self._options)

    def tell(self, terminalreporter: Any, explain: bool = False) -> None:
        """Print the verdict and what led to it. ``explain`` failures here, where pytest was told to print none."""
        if self.verdict is None:
            return
        report = self.report()
        terminalreporter.section(f"conformance of {self.plugin.identifier}")
        self._tell_counts(terminalreporter, report)
        terminalreporter.line(f"  delivery: {report['delivery']}")
        for how in (FULL, REFUSED, NOT_SHOWN, FAILED):
            features = [feature for feature, each in report["shown"].items() if each == how]
            if features and self.results and not (self.of_chosen and how == NOT_SHOWN):
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
        if explain:
            self._tell_failures(terminalreporter)
        for feature, reason in report["unproven"].items():
            terminalreporter.line(f"  declared, not shown: {feature} ({reason})")
        told = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
        terminalreporter.line(f"  with {told}")
        terminalreporter.line(f"  run with {' '.join(report['options'])}")
        said = self.verdict.name
        if self.as_asked and not self.verdict.conformant:
            said = f"none, as only {len(self._asked)} of {len(self._expected)} tests were asked for, and none failed"
        terminalreporter.line(f"verdict: {said}", bold=True, green=self.as_asked)


def _load(name: str) -> LakeStoragePlugin:
    try:
        plugin = load_format(name)
        supplied_for(name)
    except PluginError as error:
        raise pytest.UsageError(f"--lake-format={name}: {error}") from error
    return plugin
