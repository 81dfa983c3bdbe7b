"""Takes one guard away in a copy of the sources, and asks its tests."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from laketier_verification.guards.listed import ROOT, Guard

_PLUGINS = ("localfile", "delta", "iceberg", "lance")
# Earlier than what the environment has installed from the checkout.
_SOURCES = ("core", "conformance", "verification", *(f"plugins/{name}" for name in _PLUGINS))
COPIED = ("core", "conformance", "verification", "plugins", "tests", "pyproject.toml")
_REMEMBERED = ".failed"
"""The folder in which pytest remembers which tests failed: their names have blanks, so its words don't tell them."""
_TOLD_LINES = 3
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class NothingShown(Exception):
    """A test that fails without a guard fails with it, too; or pytest ended without the guard as no test makes it: what
    is left of the source can't be imported, or pytest was asked for what is not there."""


@dataclass(frozen=True)
class Verdict:
    """What happened without a guard. ``noticed_by`` is the first test that failed, and which passes with the guard;
    empty: nobody noticed."""

    guard: Guard
    noticed_by: str
    seconds: float


@dataclass(frozen=True)
class SourcesCopy:
    """A folder with a copy of the sources and tests."""

    folder: Path
    most_seconds: float = 600
    """For one run of pytest."""

    @classmethod
    def of_checkout(cls, folder: Path) -> SourcesCopy:
        for name in COPIED:
            _copy(ROOT / name, folder / name)
        return cls(folder)

    def without(self, guard: Guard) -> Verdict:
        """Raises `NothingShown`."""
        path = self.folder / guard.file
        whole = path.read_text(encoding="utf-8")
        started = time.monotonic()
        shutil.rmtree(self.folder / _REMEMBERED, ignore_errors=True)
        path.write_text(guard.without(whole), encoding="utf-8")
        try:
            failed = self._run(guard.tests)
        finally:
            path.write_text(whole, encoding="utf-8")
        seconds = time.monotonic() - started
        # Only what failed is asked once more: that the other tests pass in this checkout says nothing about the guard.
        if failed and self._run(guard.tests, "--last-failed"):
            raise NothingShown(f"{failed} fails although the guard is there: {guard.name}")
        return Verdict(guard, failed, seconds)

    def _run(self, tests: str, *more: str) -> str:
        """The first test that fails, or that there was no end; empty when all pass. Raises `NothingShown`."""
        words = shlex.split(tests.replace("CONFORMANCE=", "--pyargs laketier_conformance --lake-format="))
        path = os.pathsep.join(str(self.folder / name) for name in _SOURCES)
        # Two sources of the same second and size would share a cached one.
        environment = {**os.environ, "PYTHONPATH": path, "CI": "true", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={self.folder / _REMEMBERED}"]
        try:
            done = subprocess.run(
                [*command, *words, *more],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=self.most_seconds,
            )
        except subprocess.TimeoutExpired:
            return f"no end within {self.most_seconds} s"
        failed = _FAILED.search(done.stdout)
        if failed and "::" in failed[1]:
            return next((name for name in self._remembered() if name.startswith(failed[1])), failed[1])
        # A part of the conformance suite ends with a verdict of its own, which is no failed test.
        if failed is None and " passed" in done.stdout:
            return ""
        told = f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_TOLD_LINES:]
        raise NothingShown(f"pytest ended with {done.returncode}, and no test failed: {tests}: {' '.join(told)}")

    def _remembered(self) -> Sequence[str]:
        try:
            path = self.folder / _REMEMBERED / "v" / "cache" / "lastfailed"
            return list(json.loads(path.read_text(encoding="utf-8")))
        except OSError:
            return ()


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copy2(source, target)
    else:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
