"""Requests to other processes, each of whose own requests to a server may meet a fault."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laketier_conformance.children import Child, ChildDied
from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.seccomp import Notification
from laketier_conformance.interposed.supervisor import DONE, Supervisor
from laketier_conformance.interposed.wire import BEFORE, CUT, LATE, LOST, UNAVAILABLE, Wire
from laketier_conformance.lake import Lake

NOWHERE = -1
HAPPENED = {
    BEFORE: "the connection was reset before",
    LOST: "the answer was lost after",
    CUT: "the answer was cut off after",
    LATE: "the answer came late after",
    UNAVAILABLE: "503 was answered after",
}


@dataclass
class Asking:
    """What one request did. ``requests``: those that it made of servers. ``met``: whether one of them met the fault.
    ``answer``: None if it died."""

    do: str
    requests: list[str]
    met: bool
    answer: dict[str, Any] | None


class Answers:
    """Runs requests for one warehouse, each in a process of its own."""

    def __init__(self, take: Callable[[int], list[Child]], lake: Lake) -> None:
        self._take, self._lake = take, lake
        self.met = 0
        self.unseen: dict[str, None] = {}
        """Sentences on faults that could not be made."""

    def run(
        self,
        do: str,
        *,
        at: int = NOWHERE,
        how: str = "",
        meanwhile: Callable[[], object] | None = None,
        **request: Any,
    ) -> Asking:
        """Ask a process of its own. Its request number ``at`` to a server, of which the first is 0, meets the fault
        ``how``, and ``meanwhile`` is done to the server."""
        wire = Wire((at, how), meanwhile)

        def connect(notification: Notification) -> Effect | None:
            error = wire.redirect(notification)
            return None if error is None else Effect("connect", ("",), error)

        (child,) = self._take(1)
        with (
            tempfile.TemporaryDirectory(prefix="answers-") as folder,
            Supervisor(lambda effect: effect.received or DONE, Path(folder, "s"), connect) as by,
        ):
            try:
                answer = child.ask(self._lake, do, supervised=str(by.path), sees="connections", **request)
            except ChildDied:
                answer = None
            finally:
                child.stop()
                wire.close()
        if wire.failed is not None:
            raise wire.failed
        self.met += wire.met
        self.unseen.update(wire.unseen)
        return Asking(do, wire.requests, wire.met, answer)

    def told(self, asking: Asking, at: int, how: str) -> str:
        """For a message: which request met what."""
        if not asking.met:
            return f"nothing came upon a request to {asking.do}"
        return f"{HAPPENED[how]} request {at + 1} to a server, {asking.requests[at]}"
