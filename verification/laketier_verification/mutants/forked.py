"""One fork of the process that has imported everything: it is given mutants, and runs tests until one fails."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pytest

Say = Callable[[dict[str, Any]], None]
_START = 60.0
"""Seconds for what comes before the first test."""
_MEMORY = "/dev/shm"
"""Tests keep their files there, where there is one: a disk spends most of a run on the syncs of small tables."""


@dataclass(eq=False)
class Reports:
    """A plugin of pytest: whether the test at hand passed."""

    failed: bool = False
    passed: bool = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed
        self.passed = self.passed or (report.when == "call" and report.passed)


@dataclass(frozen=True)
class Test:
    """A test, and the seconds that it may take."""

    item: pytest.Item
    limit: float = 300.0


def in_a_fork(
    work: Callable[[Say, Path], None], limit_of: Callable[[dict[str, Any]], float], first: float = _START
) -> Generator[dict[str, Any]]:
    """What ``work`` says in a fork, which ends with it. ``limit_of`` tells how long to wait for what comes after a word
    of it, and ``first`` for the first one; then the last word is ``{"timeout": True}``. What it started is ended, too.
    """
    reading, writing = os.pipe()
    folder = Path(tempfile.mkdtemp(prefix="mutant-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    with warnings.catch_warnings():
        # A library's hook may warn of forks, as Lance's does. pytest, for which warnings are errors, keeps them in the
        # parent and has the first test of every later fork fail by them: each mutant would seem noticed.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if not pid:
        os.close(reading)
        _work(work, writing, folder)
    os.close(writing)
    try:
        yield from _words(reading, limit_of, first)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError, PermissionError):  # the second by macOS, of a group that has ended
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        shutil.rmtree(folder, ignore_errors=True)


def run(test: pytest.Item, after: pytest.Item | None, reports: Reports) -> Reports:
    """One test, as pytest's own loop would."""
    reports.failed = reports.passed = False
    test.config.hook.pytest_runtest_protocol(item=test, nextitem=after)
    return reports


def run_until_one_fails(tests: Sequence[Test], folder: Path, reports: Reports, say: Say) -> None:
    """Says each that begins, and the one that fails."""
    keep_files_in(folder, tests)
    for test, after in zip(tests, [*tests, None][1:], strict=True):
        say({"begin": test.item.nodeid, "limit": test.limit})
        if run(test.item, after.item if after else None, reports).failed:
            say({"failed": test.item.nodeid})
            return
    say({"passed": len(tests)})


def keep_files_in(folder: Path, tests: Sequence[Test]) -> None:
    """Fixtures make their files there."""
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    if tests:
        files = folder / "files"
        files.mkdir()
        tests[0].item.config._tmp_path_factory._basetemp = files  # type: ignore[attr-defined]


def _work(work: Callable[[Say, Path], None], writing: int, folder: Path) -> NoReturn:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        sys.stdout = sys.__stdout__ or sys.stdout
        sys.stderr = sys.__stderr__ or sys.stderr
        with os.fdopen(writing, "w", encoding="utf-8", buffering=1) as words:
            try:
                work(_saying(words), folder)
            except BaseException:  # noqa: BLE001 - whatever a mutant does to us
                words.write(json.dumps({"broken": traceback.format_exc()}) + "\n")
    finally:
        os._exit(0)


def _saying(words: TextIO) -> Say:
    def say(word: dict[str, Any]) -> None:
        words.write(json.dumps(word) + "\n")
        words.flush()

    return say


def _words(reading: int, limit_of: Callable[[dict[str, Any]], float], first: float) -> Iterator[dict[str, Any]]:
    text, until = b"", time.monotonic() + first
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            yield {"timeout": True}
            return
        data = os.read(reading, 1 << 16)
        if not data:
            return
        text += data
        while b"\n" in text:
            line, _, text = text.partition(b"\n")
            word: dict[str, Any] = json.loads(line)
            until = time.monotonic() + limit_of(word)
            yield word
