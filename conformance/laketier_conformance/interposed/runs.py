"""Requests to another process, each effect of which is decided on."""

from __future__ import annotations

import errno
import itertools
import tempfile
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from laketier_conformance.children import Child, ChildDied
from laketier_conformance.interposed.deciding import MOST, NOWHERE, Cut, Deciding, Meanwhile, Run, Upon
from laketier_conformance.interposed.disk import SYNCS, WRITES, Disk
from laketier_conformance.interposed.files import HALVED
from laketier_conformance.interposed.files import TWICE as CHANGES_OF_NAMES
from laketier_conformance.interposed.sight import Sight
from laketier_conformance.interposed.supervisor import HALVE, INTERRUPT, KILL, LOSE, TWICE, Supervisor
from laketier_conformance.lake import Lake

_EACH, _SOME, _LAST = 100, 25, 10
"""Of the steps of a request the first ones are decided on each, then about so many, then the last ones each."""
_END = 3
"""Of the writes of a file, so many are its end: those of another request's file may be two fewer."""

Do = Callable[[int], dict[str, Any]]


class TooManySteps(AssertionError):
    """A request was killed, as it took more steps than the suite looks at."""


class Interposed:
    """Runs requests for one warehouse. ``folder``: where it is, if it is on the local disk."""

    def __init__(self, take: Callable[[int], list[Child]], lake: Lake, folder: Path) -> None:
        self._take, self._lake = take, lake
        self.sight = Sight(folder)

    def run(
        self,
        do: str,
        *,
        at: int,
        decided: int = 0,
        late: int = 0,
        meanwhile: Meanwhile | None = None,
        but: Container[str] = (),
        only: Container[str] | None = None,
        sends: bool = False,
        disk: Disk | None = None,
        cut: Cut | None = None,
        refuse: tuple[int, int] = (NOWHERE, 0),
        **request: Any,
    ) -> Run:
        """Ask a process of its own. Before step number ``at``, of which the first is 0, call ``meanwhile``, and then
        let it happen, fail it with the errno ``decided`` (EIO stands for each `error_of_a_disk`), kill it, or lose its
        answer. Of many alike it is the first, or number ``late`` and those behind it. Calls named in ``but`` are no
        steps, and where there is an ``only``, no others than those; with ``sends``, only sends are. ``disk`` takes all
        calls, and ``cut`` looks at it whenever a power cut may leave something new, and is told the call that came
        last. ``refuse``: which lock ends in which errno, of which the first is 0; locks are no steps."""
        upon = Upon(at, decided, meanwhile, but, only, sends, disk, cut, refuse, late)
        deciding = Deciding(Run(do, at), upon, self.sight)
        run = deciding.run
        (child,) = self._take(1)
        # Names of sockets are short, and folders of tests are not.
        with (
            tempfile.TemporaryDirectory(prefix="effects-") as folder,
            Supervisor(deciding.decide, Path(folder, "s")) as by,
        ):
            try:
                run.answer = child.ask(self._lake, do, supervised=str(by.path), **request)
            except ChildDied:
                run.answer = None
            finally:
                child.stop()
        run.lost = by.lost
        if by.lost:
            self.sight.kinds["answers lost"] += by.lost
        if not {"failed", "refused"} & (run.answer or {"failed": ""}).keys():
            self.sight.ended(do, deciding.seen, by.before)
        if len(run.steps) > MOST:
            raise TooManySteps(f"{do} has no end: it was killed at step {MOST}, {run.last.below(self._lake.location)}")
        return run

    def told(self, run: Run, happened: str) -> str:
        """Say for a message which step ``happened`` to a run, such as "killed before"."""
        if run.at == NOWHERE or not run.steps:
            return f"nothing came upon a request to {run.do}"
        return f"{happened} step {run.at + 1}, {run.decided.below(self._lake.location)}"

    def told_of_lock(self, run: Run, at: int, error: int) -> str:
        """Say for a message which lock was refused."""
        if at >= len(run.locks):
            return f"nothing came upon a request to {run.do}"
        return f"{errno.errorcode[error]} from lock {at + 1}, {run.locks[at].below(self._lake.location)}"


def killed_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each step, by ``do`` of the request's number, and kill it before that step. The last run
    ends by itself."""
    for run in _at_each(runs, do, decided=KILL, but=SYNCS):
        yield run
        if run.answer is not None and run.at != NOWHERE:
            _went_well(run)
            return


def failed_at_each(
    runs: Interposed, do: Do, error: int = errno.EIO, only: Container[str] | None = None
) -> Iterator[Run]:
    """Make one request for each step, and fail that step with the errno ``error`` (EIO: with `error_of_a_disk`), a send
    with the end of its connection. Where there is an ``only``, no calls but those are steps."""
    return _until_there_is_none(_at_each(runs, do, decided=error, only=only))


def filled_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each file of several writes, and let the disk be full at the end of it."""
    whole = runs.run(at=NOWHERE, **do(0))
    yield whole
    many = [(at, max(1, n - _END)) for at, n in enumerate(whole.times) if n > 1 and whole.steps[at].call in WRITES]
    for number, (at, late) in enumerate(many, 1):
        yield runs.run(at=at, decided=errno.ENOSPC, late=late, **do(number))


def reset_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each send, and end its connection before it."""
    return _until_there_is_none(_at_each(runs, do, decided=errno.EIO, sends=True))


def lost_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each send: it happens, and its answer is taken away when it has come."""
    return _until_there_is_none(_at_each(runs, do, decided=LOSE, sends=True))


def halved_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each write to a file, of which a half happens, as its result says."""
    return _until_there_is_none(_at_each(runs, do, decided=HALVE, only=HALVED))


def interrupted_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each change of a name: it happens, and then a signal comes, as from Ctrl-C. A process that
    ends by it gives no answer."""
    return _until_there_is_none(_at_each(runs, do, decided=INTERRUPT, only=CHANGES_OF_NAMES))


def done_twice_at_each(runs: Interposed, do: Do) -> Iterator[Run]:
    """Make one request for each change of a name: it happens, and is then done again."""
    return _until_there_is_none(_at_each(runs, do, decided=TWICE, only=CHANGES_OF_NAMES))


def rivalled_at_each(runs: Interposed, do: Do, *, but: Container[str] = SYNCS) -> Iterator[Run]:
    """Make one request for each step, before which comes what the request has as ``meanwhile``. Calls named in ``but``
    are no steps."""
    return _until_there_is_none(_at_each(runs, do, but=but))


def _until_there_is_none(some: Iterator[Run]) -> Iterator[Run]:
    for run in some:
        if run.at >= len(run.steps):
            _went_well(run)
            return
        yield run


def _went_well(run: Run) -> None:
    """Where nothing came upon it: a request that fails in any case would show nothing."""
    answer = run.answer or {"failed": "its process died"}
    assert not {"failed", "refused"} & answer.keys(), (
        f"nothing came upon a request to {run.do}, and it ended in {answer}"
    )


def _at_each(runs: Interposed, do: Do, **how: Any) -> Iterator[Run]:
    """Without an end. Of very many steps, such as a store on the network has, some are passed over, and the report says
    so. One run in between tells how many there are: nothing comes upon it."""
    numbers = itertools.count()

    def run(at: int) -> Run:
        return runs.run(at=at, **how, **do(next(numbers)))

    yield from map(run, range(_EACH))
    whole = run(NOWHERE)
    yield whole
    total = len(whole.steps)
    between = between_the_first_and_the_last(total)
    if between.step > 1:
        runs.sight.skips(whole.do, total, between.step)
    yield from map(run, between)
    yield from map(run, itertools.count(max(_EACH, total - _LAST)))


def between_the_first_and_the_last(total: int) -> range:
    """Of so many steps, those that are decided on between the first ones and the last ones, which are each."""
    last = max(_EACH, total - _LAST)
    return range(_EACH, last, max(1, -(-(last - _EACH) // _SOME)))


def spread(total: int, most: int, draw: int) -> range:
    """At most ``most`` of so many steps, as far from each other; all of them where it is 0. With other numbers to
    ``draw`` them they are others, and all have their turn as it counts up."""
    stride = max(1, -(-total // most)) if most else 1
    return range(draw % stride, total, stride)
