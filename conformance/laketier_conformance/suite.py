"""One run of the suite: strictness, the rule about refusals, results, verdict and report."""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from laketier.plugins import installed_formats, load_format
from laketier.spi import Feature, FeatureNotSupported, LakeStoragePlugin, PluginError
from laketier_conformance.manifest import expected_tests, name_of
from laketier_conformance.verdict import FAIL, Result, Verdict, judge

NAME, REFUSED = "laketier_test", "laketier_refused"


class Suite:
    """A pytest plugin, registered only when a format is named. Results are gathered from reports, so they are whole
    under xdist too, where tests run in other processes."""

    def __init__(self, config: pytest.Config, name: str, lanes: tuple[str, ...]) -> None:
        self._config = config
        self._reports = not hasattr(config, "workerinput")
        self.lanes = lanes
        self.results: dict[str, Result] = {}
        self._expected = expected_tests()
        self.verdict: Verdict | None = None
        file = config.getoption("lake_report")
        self._file = None if file is None else Path(file).absolute()
        if self._file is not None and self._reports:
            # A crash must not leave the verdict of an earlier run behind.
            self._file.unlink(missing_ok=True)
        self.plugin = _load(name)
        (self._offer,) = [offer for offer in installed_formats() if offer.name == name]

    # -- strictness that does not depend on the author's own configuration ------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            lane = item.get_closest_marker("lane")
            (chosen if lane is None or lane.args[0] in self.lanes else left_out).append(item)
            name = name_of(item.path, item.nodeid)
            if name is not None:
                # Travels with each report, also out of the processes of xdist.
                item.user_properties.append((NAME, name))
                # Engines may warn as they like, whatever the author's own configuration makes of it; laketier may not.
                item.add_marker(pytest.mark.filterwarnings("default", "error:::laketier"))
        if left_out:
            items[:] = chosen
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """A test that needs what the format does not have must end in the refusal of just that."""
        needed: set[Feature] = set()
        for marker in pyfuncitem.iter_markers("needs"):
            needed |= set(marker.args)
        missing = {feature.value for feature in needed if not self.plugin.features[feature].full}
        if not missing:
            return (yield)
        lacking = ", ".join(sorted(missing))
        try:
            yield
        except FeatureNotSupported as refusal:
            if refusal.feature not in missing:
                pytest.fail(f"{lacking} is declared unsupported, and {refusal.feature} was refused instead")
            pyfuncitem.user_properties.append((REFUSED, lacking))
            return True
        pytest.fail(f"{lacking} is declared unsupported, and was not refused")

    # -- results ----------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        name = str(told[NAME]) if NAME in told else self._failure_of(report)
        if name is not None:
            refused = told.get(REFUSED)
            self.results.setdefault(name, Result(name)).add(report, None if refused is None else str(refused))

    def _failure_of(self, report: pytest.TestReport) -> str | None:
        """The test that ended its process, which xdist reports by its node id alone. Only a failure is believed."""
        known = (test for test in self._expected if report.nodeid == test or report.nodeid.endswith(f"/{test}"))
        return next(known, None) if report.failed else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self._reports or session.config.getoption("collectonly"):
            return
        self.verdict = judge(self.results.values(), self._expected, int(exitstatus))
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self.report(), indent=1) + "\n", encoding="utf-8")
        if self.verdict.name == FAIL or (exitstatus == 0 and not self.verdict.conformant):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def report(self) -> dict[str, Any]:
        """The report as JSON's own types."""
        assert self.verdict is not None
        return {
            "report": 1,
            "format": self.plugin.identifier,
            "plugin": f"{self._offer.distribution}=={self._offer.version}",
            "suite": f"laketier=={importlib.metadata.version('laketier')}",
            "lanes": list(self.lanes),
            "delivery": self.plugin.delivery.value,
            "features": {
                feature.value: "full" if support.full else f"unsupported: {support.reason}"
                for feature, support in self.plugin.features.items()
            },
            "verdict": self.verdict.name,
            "why": list(self.verdict.why),
            "unproven": self.verdict.unproven,
            "results": {result.name: result.plain() for result in _sorted(self.results.values())},
        }

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.verdict is None:
            return
        terminalreporter.section(f"conformance of {self.plugin.identifier}")
        counts = Counter(result.outcome for result in self.results.values())
        terminalreporter.line(", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts)) or "no tests")
        for line in self.verdict.why:
            terminalreporter.line(f"  {line}")
        for feature, reason in self.verdict.unproven.items():
            terminalreporter.line(f"  declared, not shown: {feature} ({reason})")
        terminalreporter.line(f"verdict: {self.verdict.name}", bold=True, green=self.verdict.conformant)


def _sorted(results: Iterable[Result]) -> list[Result]:
    return sorted(results, key=lambda result: result.name)


def _load(name: str) -> LakeStoragePlugin:
    try:
        return load_format(name)
    except PluginError as error:
        raise pytest.UsageError(f"--lake-format={name}: {error}") from error
