"""Says that the state database is away, and that it is back: not with each call, as they are many."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from laketier.service.state import StateError

_AGAIN_SECONDS = 60.0


@dataclass
class Outage:
    """The trouble of one caller with the state database. For one thread at a time.

    Attributes:
        log: Where it is said.
        what: What can't be done meanwhile, as the begin of a sentence.
        clock: A monotonic clock, in seconds.
    """

    log: logging.Logger
    what: str
    clock: Callable[[], float] = time.monotonic
    _since: float | None = None
    _said_at: float = 0.0
    _said: str = ""

    @property
    def is_on(self) -> bool:
        """Whether the last call failed."""
        return self._since is not None

    def away(self, error: StateError) -> None:
        """A call failed. Says so at once, where the error is another one, and once a minute: a disk that is full of the
        state database may be that of the log, too."""
        now = self.clock()
        self._since = now if self._since is None else self._since
        if self._said == str(error) and now - self._said_at < _AGAIN_SECONDS:
            return
        lasted = f" (for {now - self._since:.0f} s)" if self._said else ""
        self._said, self._said_at = str(error), now
        self.log.warning("%s%s: %s", self.what, lasted, error)

    def back(self) -> None:
        """A call was answered."""
        if self._since is not None:
            self.log.info("the state database answers again, after %.0f s", self.clock() - self._since)
            self._since, self._said = None, ""
