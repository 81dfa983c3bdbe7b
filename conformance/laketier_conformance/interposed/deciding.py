"""What comes upon one request: each of its effects is decided on as it is about to happen."""

from __future__ import annotations

import errno
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

from laketier_conformance.interposed.disk import REMOVES, SYNCS, WRITES, Disk
from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.locks import OwnLocks
from laketier_conformance.interposed.sight import Sight
from laketier_conformance.interposed.supervisor import HALVE, KILL, LOSE, RESET

MOST = 1000
"""Steps of one request. More are a loop, where it is not of very many rows."""
NOWHERE = -1


@dataclass
class Run:
    """What one request did. ``steps``: its effects, of which many alike that follow each other are one, or two where
    the process is killed; ``times``: how many each is. ``answer``: None if it died. ``lost``: how many answers were
    taken away from it. ``locks``: what it locked and unlocked, of which many alike that follow each other are one;
    ``again``: the one that was refused was tried once more. ``void``: the first effect that came when a lock was lost,
    of which the process did not know."""

    do: str
    at: int = NOWHERE
    steps: list[Effect] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    lost: int = 0
    locks: list[Effect] = field(default_factory=list)
    again: bool = False
    void: Effect | None = None

    @property
    def last(self) -> Effect:
        """The step that came last."""
        return self.steps[-1]

    @property
    def decided(self) -> Effect:
        """The step that was failed, or had something come before it; the last one where it did not get so far."""
        return self.steps[min(self.at, len(self.steps) - 1)]

    @property
    def failed_with(self) -> str:
        """For messages: the errno of the step that failed, where it was to fail as a disk does."""
        return errno.errorcode[error_of_a_disk(self.decided, self.at)]


def error_of_a_disk(step: Effect, at: int) -> int:
    """The errno in which step number ``at`` fails. Each second one that takes room finds none: of the disk, or of the
    user's quota where it makes a name. Who passes over those alone would not be noticed by EIO."""
    if at % 2 == 0 or step.call in REMOVES:
        return errno.EIO
    return errno.ENOSPC if step.call in (*WRITES, *SYNCS) else errno.EDQUOT


Meanwhile = Callable[[], None]
Cut = Callable[[Effect], None]


@dataclass(frozen=True)
class Upon:
    """What is to come upon a request: see `Interposed.run`."""

    at: int
    decided: int
    meanwhile: Meanwhile | None
    but: Container[str]
    only: Container[str] | None
    sends: bool
    disk: Disk | None
    cut: Cut | None
    refuse: tuple[int, int]
    late: int = 0

    def passes_over(self, effect: Effect) -> bool:
        """Whether it is no step."""
        if effect.call in self.but or (self.only is not None and effect.call not in self.only):
            return True
        return effect.is_send < self.sends or (self.decided == HALVE and effect.is_send)


class Deciding:
    """Decides on each effect of one request, and keeps what it did in its `Run`."""

    def __init__(self, run: Run, upon: Upon, sight: Sight) -> None:
        self.run, self._upon, self._sight = run, upon, sight
        self.seen: list[Effect] = []
        self._own = OwnLocks()
        self._alike = 0
        self._before: Effect | None = None

    def decide(self, effect: Effect) -> int:
        """What is to become of it: 0 lets it happen, an errno fails it, and others are of `supervisor`."""
        if effect.is_lock:
            return self._lock(effect)
        if not self._sight.take(effect):
            return 0
        if self.run.void is None and self._own.is_lost():
            self.run.void = effect
        self.seen.append(effect)
        return self._step(effect) if self._upon.disk is None else self._on(self._upon.disk, effect)

    def _on(self, disk: Disk, effect: Effect) -> int:
        cut = self._upon.cut
        if cut is not None and (self._before is not None or effect.call in SYNCS):
            cut(self._before or effect)
        decided = self._step(effect)
        happens = decided != KILL and disk.apply(effect, fails=bool(decided))
        self._before = effect if happens else None
        return decided

    def _lock(self, effect: Effect) -> int:
        self._sight.kinds["locks"] += 1
        which, error = self._upon.refuse
        locks = self.run.locks
        if not locks or locks[-1] != effect:
            locks.append(effect)
            if len(locks) - 1 == which:
                return error
        elif len(locks) - 1 == which:
            self.run.again = True
        self._own.take(effect)
        return 0

    def _step(self, effect: Effect) -> int:
        if self._upon.passes_over(effect):
            return 0
        run, decided, at = self.run, self._upon.decided, self._upon.at
        self._alike = self._alike + 1 if run.steps and run.last == effect else 0
        # A second one alike may come after the first half of a file, which matters to who dies there.
        if self._alike > (decided == KILL):
            run.times[-1] += 1
            # A request that is sent in parts has its answer after the last of them.
            comes = decided == LOSE or 0 < self._upon.late <= self._alike
            return decided if comes and len(run.steps) - 1 == at else 0
        run.steps.append(effect)
        run.times.append(1)
        if len(run.steps) > MOST:
            return KILL
        if len(run.steps) - 1 != at or self._upon.late:
            return 0
        if self._upon.meanwhile is not None:
            self._upon.meanwhile()
        if effect.is_send and decided > 0:
            return RESET
        return error_of_a_disk(effect, at) if decided == errno.EIO else decided
