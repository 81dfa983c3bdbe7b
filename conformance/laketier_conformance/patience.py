"""How long a plugin is waited for. A call that never answers would hold up a run for ever, without a word.

A thread looks for how long nobody answered, and interrupts the test by SIGALRM. Where pytest-timeout has that signal,
its limit holds. Where a plugin has it, nothing can be interrupted, and the process ends.
"""

from __future__ import annotations

import linecache
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import pytest

from laketier_conformance.heard import heard, is_a_harness_asked, silent
from laketier_conformance.own_code import PACKAGES, is_of_a_suite

WAIT_SECONDS = 360.0
"""For one answer: clients have limits of a minute, and try some times."""
NEXT_SECONDS = 60.0
"""Once one was waited for in vain: the run fails in any case, and others of its tests wait for the same."""
HARNESS_SECONDS = 1800.0
"""For one answer of a harness: it may start a server, and fetch what that needs. Once somebody was waited for in vain,
as long as for a plugin's first."""
END_SECONDS = 30.0
"""Within which a call that is interrupted ends. A library that hears no signal holds up the process for ever."""
_INTERRUPTS = 3
"""In one phase of a test: whoever passes over so many passes over all."""
_LOOK_SECONDS = 1.0
_STOOD_STILL_SECONDS = 10.0
"""Who looks this much too late stood still, and so did whoever was to answer: the process was stopped, as by Ctrl-Z, by
a debugger, or with its whole machine."""
_OURS = {"laketier", "tenacity", "_pytest", "pluggy", *PACKAGES, *sys.stdlib_module_names}
"""Whose functions lie between a test and what a plugin's or a harness's author wrote."""


class Patience:
    """A plugin of pytest, for the tests of one suite. ``suite`` writes its report also where the process must end."""

    def __init__(self, suite: Any) -> None:
        self._suite = suite
        self._item: pytest.Item | None = None
        """Whose phase is underway, and may be interrupted."""
        self._thread = threading.get_ident()
        self._found = ""
        self._interrupts = 0
        self._in_vain = False
        self._is_over = threading.Event()
        # Where there was none, the number is that of some other file by now.
        self._terminal = None if sys.__stderr__ is None else os.dup(2)
        threading.Thread(target=self._look, name="waits for answers", daemon=True).start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._phase(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._phase(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._phase(item):
            return (yield)

    def pytest_enter_pdb(self) -> None:
        """Whoever looks for an error takes the time that it takes."""
        self._item = None

    def pytest_unconfigure(self) -> None:
        if not self._in_vain:
            self._is_over.set()  # else a thread may still wait for an answer, and Python for that thread

    @contextmanager
    def _phase(self, item: pytest.Item) -> Iterator[None]:
        """Who never answered fails the test, whatever the test or the plugin made of the interrupt."""
        if not is_of_a_suite(item.path) or _holder().startswith("pytest_timeout."):
            yield
            return
        self._found, self._interrupts, self._thread = "", 0, threading.get_ident()
        heard()
        if _can_interrupt(self._thread) and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:
            signal.signal(signal.SIGALRM, self._interrupt)
        self._item = item
        try:
            yield
        except Exception as error:
            if self._found:
                pytest.fail(f"{self._found} ({type(error).__name__} was raised then)")
            raise
        finally:
            self._item = None
            # The handler of whoever took the signal meanwhile stays: its next alarm would end the process otherwise.
            if self._may_interrupt():
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._found:
            pytest.fail(self._found)

    def _may_interrupt(self) -> bool:
        return _can_interrupt(self._thread) and signal.getsignal(signal.SIGALRM) == self._interrupt

    @property
    def _wait(self) -> float:
        first, next_one = (HARNESS_SECONDS, WAIT_SECONDS) if is_a_harness_asked() else (WAIT_SECONDS, NEXT_SECONDS)
        return min(first, next_one) if self._in_vain else first

    def _is_silent(self, more: float = 0.0) -> bool:
        return self._item is not None and silent() >= self._wait + more

    def _interrupt(self, _signal: int, frame: FrameType | None) -> None:
        """In the test. Nobody's `except Exception` takes what it raises, and nobody tries again."""
        if not self._is_silent():
            return  # it answered meanwhile
        self._give_up(frame)
        self._interrupts += 1
        if self._interrupts > _INTERRUPTS:
            self._end()
        heard()
        pytest.fail(self._found)

    def _give_up(self, frame: FrameType | None) -> None:
        self._found = self._found or _unanswered(frame, self._wait)
        self._in_vain = True

    def _look(self) -> None:
        since, looked = 0.0, monotonic()
        while not self._is_over.wait(_LOOK_SECONDS):
            looked, before = monotonic(), looked
            if looked - before > _LOOK_SECONDS + _STOOD_STILL_SECONDS:
                heard()
            # A main thread that waits for another, where the tests run, ends nothing.
            since = 0.0 if not (self._in_vain and self._item is None and _python_ends()) else since or monotonic()
            if since and monotonic() - since > END_SECONDS:
                os._exit(1)
            if not self._is_silent():
                continue
            if _holder().startswith("pytest_timeout."):
                continue
            if self._is_silent(END_SECONDS):
                self._give_up(sys._current_frames().get(self._thread))  # noqa: SLF001 - documented
                if holder := "" if self._may_interrupt() else _holder():
                    self._found += f". It could not be interrupted, as `{holder}` has SIGALRM"
                self._end()
            elif self._may_interrupt():
                signal.pthread_kill(self._thread, signal.SIGALRM)

    def _end(self) -> None:
        """End the process, with a report that says why."""
        try:
            with suppress(Exception):
                self._tell()
        finally:
            said = f"\n{self._found}\nIt can't be interrupted either: the process ends.\n"
            if self._terminal is not None:
                os.write(self._terminal, said.encode(errors="replace"))
            os._exit(1)

    def _tell(self) -> None:
        item = self._item
        assert item is not None
        call: pytest.CallInfo[None] = pytest.CallInfo.from_call(lambda: pytest.fail(self._found), "call")
        self._suite.pytest_runtest_logreport(item.ihook.pytest_runtest_makereport(item=item, call=call))
        self._suite.pytest_sessionfinish(item.session, pytest.ExitCode.INTERRUPTED)
        capture, reporter = map(item.config.pluginmanager.get_plugin, ("capturemanager", "terminalreporter"))
        if reporter is not None:
            if capture is not None:
                capture.suspend_global_capture()
            self._suite.pytest_terminal_summary(reporter)
            reporter.flush()


def _can_interrupt(thread: int) -> bool:
    return hasattr(signal, "SIGALRM") and thread == threading.main_thread().ident


def _holder() -> str:
    """Whose function hears SIGALRM: its module and name."""
    hears = signal.getsignal(signal.SIGALRM) if hasattr(signal, "SIGALRM") else None
    return f"{hears.__module__}.{getattr(hears, '__qualname__', '')}" if callable(hears) else ""


def _python_ends() -> bool:
    """Whether the process is at its end, and waits for its threads: then its stack begins in `threading`."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - documented
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == threading.__name__


def _unanswered(frame: FrameType | None, seconds: float) -> str:
    """The sentence on a call that never answers, by the stack of who waits for it."""
    ended = f"{_call(frame)} gave no answer for {seconds:.0f} s, and was ended: expected an answer"
    if is_a_harness_asked():
        return f"{ended} of the harness, which has so long to set up what it needs, such as a server"
    return (
        f"{ended}, or StorageError where the system gives none. Give each request a time limit, and each loop that "
        "waits for more an end"
    )


def _call(frame: FrameType | None) -> str:
    """What of a plugin or a harness the suite called, or else the suite's own statement, as it waits for a thread."""
    frames: list[FrameType] = []
    while frame is not None:
        frames.insert(0, frame)
        frame = frame.f_back
    of_suites = [number for number, each in enumerate(frames) if is_of_a_suite(Path(each.f_code.co_filename))]
    if not of_suites:
        return "the test's set-up"
    for each in frames[of_suites[0] :]:
        if str(each.f_globals.get("__name__")).partition(".")[0] not in _OURS:
            return f"`{each.f_code.co_qualname}` ({Path(each.f_code.co_filename).name}, line {each.f_lineno})"
    asks = frames[of_suites[-1]]
    return f"`{linecache.getline(asks.f_code.co_filename, asks.f_lineno).strip()}`"
