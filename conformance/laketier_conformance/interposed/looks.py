"""Requests to one process, each of whose looks at files below a warehouse is seen and may fail.

A look has no effect: it opens a file, reads it, lists a folder, asks whether something is there. So one process bears
any number of requests, and nothing has to be put back between them.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laketier_conformance.children import Child, ChildDied
from laketier_conformance.interposed.calls import ON_DESCRIPTORS
from laketier_conformance.interposed.deciding import NOWHERE, Meanwhile, Run
from laketier_conformance.interposed.effects import Effect, look_of
from laketier_conformance.interposed.supervisor import Supervisor
from laketier_conformance.lake import Lake


class Looks:
    """Of one process."""

    def __init__(self, child: Child, lake: Lake, folder: Path) -> None:
        self._child, self._lake = child, lake
        self._folder = os.path.realpath(folder)
        self._run = Run("")
        self._error = errno.EIO
        self._meanwhile: Meanwhile | None = None
        self._gone: Callable[[Effect], bool] | None = None
        self.first: dict[str, Any] = {}

    @classmethod
    @contextmanager
    def of(cls, child: Child, lake: Lake, folder: Path) -> Iterator[Looks]:
        """``folder``: where the warehouse is."""
        looks = cls(child, lake, folder)
        with (
            tempfile.TemporaryDirectory(prefix="looks-") as place,
            Supervisor(looks.decide, Path(place, "s"), look_of) as by,
        ):
            looks.first = {"supervised": str(by.path), "sees": "looks"}
            try:
                yield looks
            finally:
                child.stop()

    def ask(
        self,
        do: str,
        *,
        at: int = NOWHERE,
        error: int = errno.EIO,
        meanwhile: Meanwhile | None = None,
        gone: Callable[[Effect], bool] | None = None,
        **request: Any,
    ) -> Run:
        """Make one request, and fail its look number ``at``, of which the first is 0, with the errno ``error``; who
        reads an open file is not denied it any more, so that is EIO, and so is a lack of descriptors where none is
        taken. Or call ``meanwhile`` before it, and let it be. Looks that are alike and follow each other are one,
        which fails once. ``gone``: whether a look fails, however often it is done."""
        run = self._run = Run(do, at)
        self._error, self._meanwhile, self._gone = error, meanwhile, gone
        first, self.first = self.first, {}
        try:
            run.answer = self._child.ask(self._lake, do, **first, **request)
        except ChildDied:
            run.answer = None
        return run

    def told(self, run: Run, happened: str = "") -> str:
        """For a message: which look failed, or what ``happened``, such as "somebody came before"."""
        if run.at == NOWHERE or not run.steps:
            return f"nothing came upon a request to {run.do}"
        happened = happened or f"{errno.errorcode[self.failed_with(run)]} from"
        return f"{happened} a look, {run.decided.below(self._lake.location)}"

    def failed_with(self, run: Run) -> int:
        """The errno in which the look that failed ended: not each call has each of them (see `ask`)."""
        return self._error_of(run.decided)

    def decide(self, look: Effect) -> int:
        """For `Supervisor`: the number of the error in which a look ends, 0 for none."""
        run = self._run
        if not any(f"{path}/".startswith(f"{self._folder}/") for path in look.on):
            return 0
        if self._gone is not None and self._gone(look):
            run.steps.append(look)
            return self._error_of(look)
        if run.steps and run.last == look:
            return 0
        run.steps.append(look)
        if len(run.steps) - 1 != run.at:
            return 0
        if self._meanwhile is not None:
            self._meanwhile()
            return 0
        return self._error_of(look)

    def _error_of(self, look: Effect) -> int:
        needs_none = self._error == errno.EMFILE and not look.call.startswith("open")
        return errno.EIO if look.call in ON_DESCRIPTORS or needs_none else self._error


def firsts_and_lasts(looks: Sequence[Effect]) -> list[int]:
    """Of looks that are alike the first, the second and the last one, by their numbers: many look at a table once to
    find it, and again to use it."""
    alike: dict[Effect, list[int]] = {}
    for at, look in enumerate(looks):
        alike.setdefault(look, []).append(at)
    return sorted({at for each in alike.values() for at in (*each[:2], each[-1])})
