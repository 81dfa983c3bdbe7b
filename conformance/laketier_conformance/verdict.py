"""From results to a verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from laketier_conformance.failures import SAYS

CONFORMANT, PARTIAL, FAIL = "conformant", "partial", "fail"
WITHOUT_EFFECTS = "conformant-without-effects"
"""Everything ran but `test_effects`: the system does not let the suite interpose."""
UNSEEN_EFFECTS = "conformant-with-unseen-effects"
"""Everything ran that could, and the format has effects that the suite can't interpose, or it can't cut their power."""
COMPLETE = (CONFORMANT, WITHOUT_EFFECTS, UNSEEN_EFFECTS)
"""Everything ran that could, and everything passed or was refused as declared."""
NOT_RUN, NOT_INTERPOSED = "not run", "not interposed"
UNPROVEN = "laketier_unproven"
INTERPOSED = "laketier_interposed"
"""Name of a test's property: why the effects of its process could not be seen."""
FEATURES = "laketier_features"
"""Name of a test's property: the features that it is about."""
UNSEEN = "laketier_unseen"
"""Name of a test's property: an effect of the format that could not be seen, or decided on."""
PLACES = "laketier_places"
"""Name of a test's property: how many effects went where."""
STRIDES = "laketier_strides"
"""Name of a test's property: of which steps not each was decided on."""
EFFECTS = "laketier_effects"
"""Name of a test's property: how many effects of each kind were seen and decided."""
_SHOWN = 12


@dataclass
class Result:
    """What became of one test. ``outcome``: passed, refused (as declared), failed, skipped, not interposed (skipped,
    as the system does not allow what it needs), or not run: only its own phase, the call, can pass a test, and not
    those before and after it (``--setup-only``)."""

    name: str
    outcome: str = NOT_RUN
    seconds: float = 0.0
    detail: str = ""
    unproven: dict[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    effects: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, None] = field(default_factory=dict)
    strides: dict[str, None] = field(default_factory=dict)

    def add(self, report: pytest.TestReport, refused: str | None) -> None:
        """Take the report of one phase of the test."""
        self.seconds += report.duration
        features: Any = dict(report.user_properties).get(FEATURES, self.features)
        self.features = tuple(features)
        told = (str(value).partition(": ") for name, value in report.user_properties if name == UNPROVEN)
        self.unproven.update({feature: reason for feature, _, reason in told})
        for name, value in report.user_properties:
            if name == EFFECTS and isinstance(value, dict):
                self.effects.update(value)
            elif name == PLACES and isinstance(value, dict):
                self.places.update(value)
            elif name == UNSEEN:
                self.unseen[str(value)] = None
            elif name == STRIDES:
                self.strides[str(value)] = None
        failed = any(name == SAYS for name, _ in report.user_properties)
        if failed or report.outcome not in ("passed", "skipped") or hasattr(report, "wasxfail"):
            # xfail, also the imperative one, is no way to refuse; and what has to be run again ("rerun") has failed.
            self.outcome = "failed"
            self.detail = self.detail or _told(report)
        elif self.outcome == "failed":
            return
        elif report.skipped:
            interposed = any(name in (INTERPOSED, UNSEEN) for name, _ in report.user_properties)
            self.outcome, self.detail = NOT_INTERPOSED if interposed else "skipped", _last_line(report)
        elif report.when == "call":
            self.outcome, self.detail = ("passed", "") if refused is None else ("refused", refused)

    def plain(self) -> dict[str, Any]:
        """For the report."""
        document: dict[str, Any] = {"outcome": self.outcome, "seconds": round(self.seconds, 3)}
        more: dict[str, Any] = {"detail": self.detail, "interposed": self.effects, "places": self.places}
        more |= {"unseen": list(self.unseen), "strides": list(self.strides)}
        return document | {name: value for name, value in more.items() if value}


@dataclass(frozen=True)
class Verdict:
    """``why`` says what keeps it from being conformant; ``unproven`` names features that are declared FULL and that
    nothing here could show."""

    name: str
    why: tuple[str, ...]
    unproven: dict[str, str]

    @property
    def conformant(self) -> bool:
        """Everything ran that could, and everything passed or was refused as declared."""
        return self.name in COMPLETE


def judge(
    results: Iterable[Result], expected: Collection[str], exit_status: int, underway: Collection[str] = ()
) -> Verdict:
    """Conformant: all expected tests ran, and each passed or was refused as declared; "without effects" where the
    system kept the suite from interposing, "with unseen effects" where the format has some that can't be interposed.
    Partial: some did not run, and nothing failed. Else fail: a run without any result shows nothing, and of a failure
    that has no name while results are missing, nobody knows whose it was."""
    found = {result.name: result for result in results if result.outcome != NOT_RUN}
    failed = sorted(name for name, result in found.items() if result.outcome == "failed")
    skipped = sorted(name for name, result in found.items() if result.outcome == "skipped")
    blind = sorted(name for name, result in found.items() if result.outcome == NOT_INTERPOSED)
    missing = sorted(set(expected) - set(found))
    unknown = sorted(set(found) - set(expected))
    why = [f"failed: {name} ({found[name].detail})" for name in failed]
    why += [f"skipped: {name} ({found[name].detail})" for name in skipped]
    why += [f"{NOT_INTERPOSED}: {name} ({found[name].detail})" for name in blind if not found[name].unseen]
    unseen = dict.fromkeys(each for _, result in sorted(found.items()) for each in result.unseen)
    why += _some(NOT_INTERPOSED, list(unseen))
    why += _some("not run", missing)
    why += _some("not in the suite's MANIFEST", unknown)
    if not found:
        why.insert(0, "no results: no test of the suite was run")
    broken = exit_status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    nameless = exit_status == pytest.ExitCode.TESTS_FAILED and not failed and bool(missing)
    if broken or nameless:
        why.append(f"pytest ended with exit code {exit_status}{''.join(f', in {test}' for test in sorted(underway))}")
    wrong = failed or unknown or broken or nameless or not found
    without = any(not found[name].unseen for name in blind)
    complete = WITHOUT_EFFECTS if without else UNSEEN_EFFECTS if unseen else CONFORMANT
    name = FAIL if wrong else PARTIAL if skipped or missing else complete
    unproven: dict[str, str] = {}
    for result in found.values():
        unproven.update(result.unproven)
    return Verdict(name, tuple(why), unproven)


def _some(what: str, names: list[str]) -> list[str]:
    return [f"{what}: {name}" for name in names[:_SHOWN]] + (
        [f"{what}: {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    )


def _told(report: pytest.TestReport) -> str:
    says = next((str(value) for name, value in report.user_properties if name == SAYS), None)
    text = _last_line(report) if says is None else says
    return f"{report.when}: {text}" if report.when in ("setup", "teardown") else text


def _last_line(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return (text.strip().splitlines() or [""])[0][:300]
