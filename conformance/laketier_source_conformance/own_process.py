"""What is of a whole process, and no source may change: others are in it."""

from __future__ import annotations

import locale
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_OF_OTHERS = re.compile(r"TZ|LANG|LC_.*|TMPDIR|(AWS|AZURE|GOOGLE|GCS)_.*|(NO|ALL|HTTPS?)_PROXY", re.IGNORECASE)
_seen: list[set[str]] = []
"""Who looks on now."""


def of_the_process() -> dict[str, object]:
    """By what it is, how it is now."""
    root = logging.getLogger()
    return {
        "the working folder": os.getcwd(),
        "the time limit of new sockets": socket.getdefaulttimeout(),
        "the root logger": (root.level, list(map(repr, root.handlers))),
        "handlers of signals": [signal.getsignal(each) for each in sorted(signal.valid_signals())],
        "the locale": locale.setlocale(locale.LC_ALL),
        "the mode of new files": f"{_mask():03o}",
        "the time zone": time.tzname,
    }


@contextmanager
def kept_process() -> Iterator[None]:
    """As a process has it at first: a test before may have changed it. Other tests find what there was."""
    folder, limit, root, mask = os.getcwd(), socket.getdefaulttimeout(), logging.getLogger(), os.umask(0o022)
    level, handlers = root.level, list(root.handlers)
    zone, spoken = os.environ.get("TZ"), locale.setlocale(locale.LC_ALL)
    socket.setdefaulttimeout(None)
    try:
        yield
    finally:
        os.chdir(folder)
        os.umask(mask)
        socket.setdefaulttimeout(limit)
        root.handlers[:] = handlers
        root.setLevel(level)
        locale.setlocale(locale.LC_ALL, spoken)
        if os.environ.get("TZ") != zone:
            os.environ.pop("TZ", None) if zone is None else os.environ.update(TZ=zone)
            time.tzset()


@contextmanager
def put_variables() -> Iterator[set[str]]:
    """The names of the variables that others go by and that are put in the block, whatever they were before: a test
    before may have put the same."""
    _look_on()
    found: set[str] = set()
    _seen.append(found)
    try:
        yield found
    finally:
        _seen.remove(found)


@cache
def _look_on() -> None:
    """Once, as nobody can end it."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen and event in ("os.putenv", "os.unsetenv") and _OF_OTHERS.fullmatch(name := os.fsdecode(arguments[0])):
        for each in _seen:
            each.add(name)


def _mask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
