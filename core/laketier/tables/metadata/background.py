"""Work that nobody waits for. A thread does it, which is there only while there is work: none is idle when a process
forks or ends."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

log = logging.getLogger(__name__)

Job = Callable[[], object]
MOST_JOBS = 1000
MOST_BYTES = 16 * 1024 * 1024
"""Of jobs that wait. Later ones are dropped: a disk that hangs must not fill memory."""


class Background:
    """Jobs by name, one after the other; of two with one name that wait, the later one is done. Safe in threads. A job
    that fails is logged."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._jobs: OrderedDict[str, tuple[Job, int]] = OrderedDict()
        self._bytes = 0
        self._thread: threading.Thread | None = None

    def submit(self, name: str, job: Job, size: int = 0) -> bool:
        """Do ``job``, which holds ``size`` bytes, some time. Returns False where it never will be done."""
        with self._condition:
            _, former = self._jobs.get(name, (None, 0))
            if self._bytes - former + size > MOST_BYTES or len(self._jobs.keys() - {name}) >= MOST_JOBS:
                return False
            self._forget(name)
            self._jobs[name] = job, size
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="laketier-metadata-cache", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending, or there are too many threads
                    self._thread = None
                    self._forget(name)
                    return False
        return True

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until there is no more work, at most for ``seconds``. Returns whether there is none."""
        with self._condition:
            return self._condition.wait_for(lambda: self._thread is None, seconds)

    def _forget(self, name: str) -> None:
        _, size = self._jobs.pop(name, (None, 0))
        self._bytes -= size

    def _work(self) -> None:
        while True:
            with self._condition:
                if not self._jobs:
                    self._thread = None
                    self._condition.notify_all()
                    return
                name, (job, _) = next(iter(self._jobs.items()))
                self._forget(name)
            try:
                job()
            except Exception:  # nobody waits for it, so nobody else can say it
                log.warning("work behind the cache of metadata failed", exc_info=True)
