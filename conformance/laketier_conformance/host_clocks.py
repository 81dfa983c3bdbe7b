"""The clock of a host, as a plugin of this process sees it: days off, or running backwards."""

from __future__ import annotations

import datetime as dates
import glob
import importlib.metadata
import itertools
import os
import sys
import time
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from laketier.spi import clocks as clocks_of_spi
from laketier.spi.clocks import shifted
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Table

_now, _time, _time_ns = dates.datetime.now, time.time, time.time_ns
_READS = 1_000
_SECONDS = 30


LIBRARY = "libfaketimeMT.so.1"
MISSING = f"{LIBRARY} is not here, by which libraries of other languages read another clock: install libfaketime"


def shifting_library() -> str | None:
    """Where libfaketime is: where Linux's distributions put it, or on the path of libraries."""
    usual = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime")
    folders = [*usual, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    return next((file for folder in folders for file in glob.glob(f"{folder}/{LIBRARY}")), None)


def of_another_time(days: int) -> dict[str, str]:
    """The environment of a process whose whole clock is so many days ahead, to whatever language. Files are dated by
    the kernel, as ever, and how long something takes is told by another clock. Ask `shifting_library` first."""
    library = shifting_library()
    assert library is not None, MISSING
    asked = {"LD_PRELOAD": library, "FAKETIME": f"{days:+}d", "NO_FAKE_STAT": "1"}
    return {**os.environ, **asked, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class _AnyDatetime(type):
    """Moments of the suite and of libraries are moments to a plugin, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, dates.datetime)


@contextmanager
def off(milliseconds: int, packages: Container[str], *, stopped: bool = False) -> Iterator[None]:
    """`laketier.spi.host_time` is this much off within the block; and so are `time.time`, `time.time_ns` and
    `datetime.now` to modules of these packages, however they imported them. The clock that a library of another
    language reads is not, and neither is that of the suite. Where it is ``stopped``, all of them read one moment, until
    it is plain that somebody waits for the next one."""
    ticking = _Standing() if stopped else _time_ns

    def ns() -> int:
        return ticking() + milliseconds * 1_000_000

    class Shifted(dates.datetime, metaclass=_AnyDatetime):
        @classmethod
        def now(cls, tz: dates.tzinfo | None = None) -> dates.datetime:  # type: ignore[override]
            if stopped:
                return dates.datetime.fromtimestamp(ns() / 1e9, tz)
            return _now(tz) + dates.timedelta(milliseconds=milliseconds)

        @classmethod
        def utcnow(cls) -> dates.datetime:  # type: ignore[override]
            return cls.now(dates.UTC).replace(tzinfo=None)

    def shifted_time() -> float:
        return ns() / 1e9 if stopped else _time() + milliseconds / 1000

    clocks: dict[Any, Any] = {dates.datetime: Shifted, _time: shifted_time, _time_ns: ns}
    modules: dict[Any, Any] = {
        time: _Like(time, time=shifted_time, time_ns=ns),
        dates: _Like(dates, datetime=Shifted),
    }
    others = (clocks | modules).items()
    with ExitStack() as patched:
        patched.enter_context(shifted(milliseconds))
        if stopped:
            patched.enter_context(patch.object(clocks_of_spi, "time", _Like(time, time_ns=ticking)))
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in packages:
                continue
            for attribute, value in list(vars(module).items()):
                for real, other in others:
                    if value is real:
                        patched.enter_context(patch.object(module, attribute, other))
        yield


def packages(table: Table, harness: Harness) -> set[str]:
    """Those whose modules are the plugin's own, and its library's."""
    storage, info = table.lake.storage, table.info
    parts = (table.lake.plugin, storage, storage.catalog(), table.factory, storage.source(info), storage.state(info))
    kinds = itertools.chain.from_iterable(type(part).mro()[:-1] for part in (*parts, table.committer()))
    entries = importlib.metadata.entry_points(group="laketier.formats", name=table.lake.format)
    modules = [*(kind.__module__ for kind in kinds), *(entry.module for entry in entries), *harness.engine_modules]
    return {module.partition(".")[0] for module in modules} - {"laketier", "abc", "typing"}  # they use `host_time`


class _Standing:
    """A clock that stands still. Who waits for its next moment asks it again and again: then it goes on."""

    def __init__(self) -> None:
        self._moment, self._since, self._reads = _time_ns(), time.monotonic(), 0
        self._went_on: int | None = None

    def __call__(self) -> int:
        self._reads += 1
        if self._went_on is None and (self._reads > _READS or time.monotonic() - self._since > _SECONDS):
            self._went_on = _time_ns()
        return self._moment if self._went_on is None else self._moment + _time_ns() - self._went_on


class _Like:
    """A module with some of its names replaced."""

    def __init__(self, module: object, **replaced: object) -> None:
        self._module = module
        vars(self).update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
