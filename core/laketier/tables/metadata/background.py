"""Work that nobody waits for. A thread does it, which is there only while there is work: none is idle when a process
forks or ends."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

log = logging.getLogger(__name__)

Job = Callable[[], None]
MOST_JOBS = 1000
"""Later ones are dropped. A disk that hangs must not fill memory."""


class Background:
    """Jobs by name, one after the other; of two with one name that wait, the later one is done. Safe in threads. A job
    that fails is logged."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._thread: threading.Thread | None = None

    def submit(self, name: str, job: Job) -> bool:
        """Do ``job`` some time. Returns False where it never will be done."""
        with self._condition:
            if name not in self._jobs and len(self._jobs) >= MOST_JOBS:
                return False
            self._jobs[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="laketier-metadata-cache", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending, or there are too many threads
                    self._thread = None
                    del self._jobs[name]
                    return False
        return True

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until there is no more work, at most for ``seconds``. Returns whether there is none."""
        with self._condition:
            return self._condition.wait_for(lambda: self._thread is None, seconds)

    def _work(self) -> None:
        while True:
            with self._condition:
                if not self._jobs:
                    self._thread = None
                    self._condition.notify_all()
                    return
                _, job = self._jobs.popitem(last=False)
            try:
                job()
            except Exception:  # nobody waits for it, so nobody else can say it
                log.warning("work behind the cache of metadata failed", exc_info=True)
