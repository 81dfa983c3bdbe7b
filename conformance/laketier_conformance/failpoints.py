"""Failpoints of the process that runs the tests."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from laketier.kit import failpoints
from laketier.tiering.failpoints import PROTOCOL


class CountedFailpoints:
    """Switches failpoints on for one test, or notes which ones are passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._recording = ExitStack()
        self.passed: list[str] = []

    def switch_on(self, text: str) -> None:
        """As ``LAKETIER_FAILPOINTS`` would. An empty text switches all off."""
        self._monkeypatch.setattr(failpoints, "_parsed", ("", {}))  # counts of hits start anew
        self._monkeypatch.setenv(failpoints.VARIABLE, text)

    def record(self) -> None:
        """Until `forget`, note every failpoint in `passed`, in order."""
        self._recording.enter_context(failpoints.observed(self.passed.append))

    def forget(self) -> None:
        """Undo `record`; what was passed stays known."""
        self._recording.close()

    @property
    def own(self) -> list[str]:
        """Those passed that are not the protocol's: the plugin's and the shared writer's, without doubles."""
        return [name for name in dict.fromkeys(self.passed) if name not in PROTOCOL]
