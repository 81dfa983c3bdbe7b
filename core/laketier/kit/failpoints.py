"""Named points between two steps, inert unless switched on, where a test can kill, fail or pause the process.

``LAKETIER_FAILPOINTS="publish.before=kill"`` switches them on, for this process and those it starts. Several are
separated by ``;``. An action is ``kill`` (SIGKILL to this process), ``error`` (raises `FailpointError`) or
``pause(FILE)`` (creates FILE, where ``%p`` is the process id, and waits until it is removed). ``kill@3`` acts on the
third hit only; without ``@`` an action acts on every hit.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "LAKETIER_FAILPOINTS"

_ACTION = re.compile(r"(?P<action>kill|error|pause)(?:\((?P<argument>[^)]*)\))?(?:@(?P<hit>[1-9]\d*))?\Z")
_POLL_SECONDS = 0.02

_observer: Callable[[str], None] | None = None
_hits: dict[str, int] = {}
_parsed: tuple[str, dict[str, re.Match[str]]] = ("", {})


class FailpointError(RuntimeError):
    """Raised by the action ``error``. Not a `LaketierError`: the code around it sees a failure of a library below."""


def failpoint(name: str) -> None:
    """Mark the point ``name``. Costs one look at the environment when nothing is switched on."""
    if _observer is not None:
        _observer(name)
    text = os.environ.get(VARIABLE)
    if not text:
        return
    match = _parse(text).get(name)
    if match is None:
        return
    _hits[name] = _hits.get(name, 0) + 1
    if match["hit"] and _hits[name] != int(match["hit"]):
        return
    if match["action"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if match["action"] == "error":
        raise FailpointError(f"failpoint {name}")
    _pause(Path((match["argument"] or "").replace("%p", str(os.getpid()))))


@contextmanager
def observed(observer: Callable[[str], None]) -> Iterator[None]:
    """Within the block, in all threads of this process, call ``observer`` at each failpoint with its name. Errors of
    the observer pass through the failpoint, so a test can schedule threads, or end a round, at that point."""
    global _observer
    before, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = before


def _pause(flag: Path) -> None:
    flag.touch()
    while flag.exists():
        time.sleep(_POLL_SECONDS)


def _parse(text: str) -> dict[str, re.Match[str]]:
    global _parsed
    if _parsed[0] == text:
        return _parsed[1]
    points: dict[str, re.Match[str]] = {}
    for part in text.split(";"):
        name, equals, action = part.strip().partition("=")
        match = _ACTION.match(action)
        if not equals or match is None or (match["action"] == "pause") != bool(match["argument"]):
            raise ValueError(f"{VARIABLE}: {part!r} is not name=kill, name=error or name=pause(FILE), with @N or not")
        points[name] = match
    _hits.clear()
    _parsed = (text, points)
    return points
