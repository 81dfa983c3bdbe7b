"""What the suite saw of the effects of a format, and what it knows that it did not see."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from laketier_conformance.interposed.calls import UNDECIDED
from laketier_conformance.interposed.effects import UNKNOWN_PEER, Effect, is_nowhere, is_shared, kind_of

BELOW, ELSEWHERE = "files of the warehouse", "other files"
_FORKS = "laketier_conformance.forks"
_CHANCE = re.compile(r"[0-9a-fA-F]{6,}|[0-9]+")
"""What a name has of a process or of chance."""
NEEDS_NO_EFFECT = frozenset({"make_again", "replay"})
"""Requests that a format may answer with a look: the table, or the epoch, is there, and durable."""


class Sight:
    """Of one test. ``kinds`` and ``places`` count effects. ``unseen``: sentences on what could not
    be decided on. ``strides``: on what was passed over."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.path.realpath(folder)
        self.kinds: Counter[str] = Counter()
        self.places: Counter[str] = Counter()
        self.unseen: dict[str, None] = {}
        self.strides: dict[str, None] = {}
        self._elsewhere: dict[str, None] = {}
        self._shared: dict[str, None] = {}

    @property
    def peers(self) -> list[str]:
        """Where sends went."""
        return sorted(place for place in self.places if place not in (BELOW, ELSEWHERE))

    @property
    def left_elsewhere(self) -> str | None:
        """A file outside of the warehouse that was changed and is still there."""
        return next((path for path in self._elsewhere if os.path.isfile(path)), None)

    def take(self, effect: Effect) -> bool:
        """Count an effect. Whether it can be decided on."""
        if any(map(is_shared, effect.on)):
            self._shared.update(dict.fromkeys(effect.on))
            return False
        if effect.call in UNDECIDED:
            what = UNDECIDED[effect.call] + (f" {self._told(effect)}" if effect.call == "mmap" else "")
            self.unseen[f"{what}: its effects are no calls of the system"] = None
            return False
        self.kinds[kind_of(effect)] += 1
        below = effect.is_send or self._is_below(effect)
        self.places[effect.on[0] if effect.is_send else BELOW if below else ELSEWHERE] += 1
        if not below:
            self._elsewhere.update(dict.fromkeys(effect.on))
        if effect.on == (UNKNOWN_PEER,):
            self.unseen[f"{UNKNOWN_PEER}: no answer of it can be lost"] = None
        return True

    def ended(self, do: str, effects: list[Effect], before: list[str]) -> None:
        """A request came to its end, with these effects."""
        self.unseen.update(dict.fromkeys(before))
        # Libraries make some for themselves and take it away. What stays is for another process.
        for name in sorted({_CHANCE.sub("*", path) for path in self._shared if os.path.exists(path)}):
            self.unseen[f"memory that processes share by the name {name}: its effects are none of a disk"] = None
        if not effects and do not in NEEDS_NO_EFFECT:
            self.unseen[f"a request to {do}: it had no effect on a file or a socket"] = None
        elif effects and not any(effect.is_send or self._is_below(effect) for effect in effects):
            some = effects[0].on[-1]
            self.unseen[f"a request to {do}: its effects are on files elsewhere alone, such as {some}"] = None

    def skips(self, do: str, total: int, stride: int) -> None:
        """Not all steps of a request are decided on."""
        self.strides[f"of {total} steps of a request to {do}, the first and last ones and each {stride}th between"] = (
            None
        )

    def _is_below(self, effect: Effect) -> bool:
        return any(f"{path}/".startswith(f"{self._folder}/") for path in effect.on) or effect.on == ("/",)

    def _told(self, effect: Effect) -> str:
        path = effect.on[-1]
        return f"a file {Path(path).suffix or 'without a suffix'!r}" if self._is_below(effect) else path


def unseen_of(pid: int) -> list[str]:
    """What a process that has just asked to be supervised started, or mapped, before."""
    found = [f"{told}: started before effects were seen" for told in _processes(pid)]
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        shared = {line.split(maxsplit=5)[-1].strip() for line in lines if line.split()[1].startswith("rw-s")}
        devices = {path for path in shared if path.startswith("/dev/") and is_nowhere(path)}
        files = sorted(path for path in shared - devices if path.startswith("/"))
        found += [f"writes to the memory mapped to {path} before effects were seen" for path in files]
    with suppress(OSError):
        folder = f"/proc/{pid}/fd"
        if any("io_uring" in _link(f"{folder}/{name}") for name in os.listdir(folder)):
            found.append("io_uring, set up before effects were seen")
    return found


def _processes(pid: int) -> Iterator[str]:
    ours = _command(pid)
    for child in _children(pid):
        yield f"the process {_command(child)!r}"
    parent = _parent(pid)
    if _FORKS in _command(parent):
        # What a fork is made of has its command; what an import started has not.
        for child in _children(parent):
            if _command(child) not in (ours, ""):
                yield f"the process {_command(child)!r}"


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as text:
                found += map(int, text.read().split())
    return found


def _parent(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
    return 0


def _command(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as text:
        return text.read(400).replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def _link(path: str) -> str:
    with suppress(OSError):
        return os.readlink(path)
    return ""
