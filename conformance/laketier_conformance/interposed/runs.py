"""Requests to another process, each effect of which is decided on."""

from __future__ import annotations

import errno
import tempfile
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from laketier_conformance.children import Child, ChildDied
from laketier_conformance.interposed.disk import SYNCS, Disk
from laketier_conformance.interposed.effects import Effect, kind_of
from laketier_conformance.interposed.supervisor import KILL, Supervisor
from laketier_conformance.lake import Lake

_MOST = 400
"""Steps of one request. More are a loop."""


@dataclass
class Run:
    """What one request did. ``steps``: its effects, of which many alike that follow each other are one, or two where
    the process is killed. ``answer``: None if it died."""

    steps: list[Effect] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    at: int = -1

    @property
    def last(self) -> Effect:
        """The step that came last."""
        return self.steps[-1]

    @property
    def decided(self) -> Effect:
        """The step that was failed, or had something come before it; the last one where it did not get so far."""
        return self.steps[min(self.at, len(self.steps) - 1)]


Meanwhile = Callable[[], None]
Cut = Callable[[Effect], None]


class Interposed:
    """Runs requests for one warehouse. ``kinds`` counts the effects that were seen."""

    def __init__(self, take: Callable[[int], list[Child]], lake: Lake) -> None:
        self._take, self._lake = take, lake
        self.kinds: Counter[str] = Counter()

    def run(
        self,
        do: str,
        *,
        at: int,
        decided: int = 0,
        meanwhile: Meanwhile | None = None,
        but: Container[str] = (),
        only: Container[str] | None = None,
        disk: Disk | None = None,
        cut: Cut | None = None,
        **request: Any,
    ) -> Run:
        """Ask a process of its own. Before step number ``at``, of which the first is 0, call ``meanwhile``, and then
        let it happen, fail it with the errno ``decided``, or kill it. Calls named in ``but`` are no steps, and where
        there is an ``only``, no others than those. ``disk`` takes all calls, and ``cut`` looks at it whenever a power
        cut may leave something new, and is told the call that came last."""
        run = Run(at=at)
        alike = 0
        before: Effect | None = None

        def decide(effect: Effect) -> int:
            nonlocal before
            if disk is None:
                return step(effect)
            if cut is not None and (before is not None or effect.call in SYNCS):
                cut(before or effect)
            decided = step(effect)
            before = effect if decided != KILL and disk.apply(effect, fails=bool(decided)) else None
            return decided

        def step(effect: Effect) -> int:
            nonlocal alike
            self.kinds[kind_of(effect)] += 1
            if effect.call in but or (only is not None and effect.call not in only):
                return 0
            alike = alike + 1 if run.steps and run.last == effect else 0
            # A second one alike may come after the first half of a file, which matters to who dies there.
            if alike > (decided == KILL):
                return 0
            run.steps.append(effect)
            if len(run.steps) > _MOST:
                return KILL
            if len(run.steps) - 1 != at:
                return 0
            if meanwhile is not None:
                meanwhile()
            return decided

        (child,) = self._take(1)
        # Names of sockets are short, and folders of tests are not.
        with tempfile.TemporaryDirectory(prefix="effects-") as folder, Supervisor(decide, Path(folder, "s")) as by:
            try:
                run.answer = child.ask(self._lake, do, supervised=str(by.path), **request)
            except ChildDied:
                run.answer = None
            finally:
                child.stop()
        assert len(run.steps) <= _MOST, f"{do} has no end: {run.last.below(self._lake.location)}"
        return run

    def told(self, run: Run, happened: str) -> str:
        """Say for a message which step ``happened`` to a run, such as "killed before"."""
        return f"{happened} step {run.at + 1}, {run.decided.below(self._lake.location)}"


def killed_at_each(runs: Interposed, do: Callable[[int], dict[str, Any]]) -> Iterator[Run]:
    """Make one request for each step, by ``do`` of the step's number, and kill it before that step. The last run ends
    by itself."""
    for at in count():
        run = runs.run(at=at, decided=KILL, but=SYNCS, **do(at))
        yield run
        if run.answer is not None:
            return


def failed_at_each(
    runs: Interposed, do: Callable[[int], dict[str, Any]], disk: Callable[[], Disk | None] = lambda: None
) -> Iterator[Run]:
    """Make one request for each step, and fail that step with an input/output error. ``disk`` is one for each."""
    for at in count():
        run = runs.run(at=at, decided=errno.EIO, disk=disk(), **do(at))
        if len(run.steps) <= at:
            return
        yield run
