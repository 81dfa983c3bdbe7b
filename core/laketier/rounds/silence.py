"""A task where whoever runs it can't be kept waiting for ever: as a task of an engine holds a place of its cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from laketier.rounds.log_task import LogAnswer, LogTask, run_log_task
from laketier.rounds.threads import Threads

_threads = Threads()


@dataclass(frozen=True)
class Heard:
    """``answer``: None where the task was silent for longer than patience lasted. ``silent_seconds``: the longest time
    between two batches."""

    answer: LogAnswer | None
    silent_seconds: float


def run_unless_silent(
    task: LogTask, patience_seconds: float, run: Callable[[LogTask, Callable[[], None]], LogAnswer] = run_log_task
) -> Heard:
    """`run_log_task`, waited for until there was no batch for ``patience_seconds``. Executor. What is silent goes on in
    its thread, for as long as the process lives: what it stages is of an attempt that nobody publishes. Raises only
    what `ends_the_process`."""
    told: SimpleQueue[LogAnswer | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            told.put(run(task, lambda: told.put(None)))
        except BaseException as error:  # noqa: BLE001 - for whoever waits
            told.put(error)

    _threads.start("task", work)
    longest = 0.0
    while True:
        since = time.monotonic()
        try:
            news = told.get(timeout=patience_seconds)
        except Empty:
            return Heard(None, time.monotonic() - since)
        longest = max(longest, time.monotonic() - since)
        if isinstance(news, BaseException):
            raise news
        if news is not None:
            return Heard(news, longest)
