"""Waits for a disk, but not for ever: one that hangs, such as a home behind a network that is gone, must not keep
anybody from tables that lie elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 2.0


class Patience:
    """Calls in a thread of their own. While one hangs, no other is begun. Safe in threads. ``seconds``: how long a call
    is waited for."""

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._seconds = seconds
        self._hanging: threading.Thread | None = None

    def wait_for(self, work: Callable[[], T]) -> T | None:
        """What ``work`` returns; None where it takes too long, or an earlier one still does. Raises what it raises."""
        if self._hanging is not None and self._hanging.is_alive():
            return None
        answers: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(work())
            except BaseException as error:  # noqa: BLE001 - raised below, in the caller's thread
                errors.append(error)

        thread = threading.Thread(target=run, name="laketier-metadata-disk", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, or there are too many threads
            return None
        thread.join(self._seconds)
        if errors:
            raise errors[0]
        if answers:
            return answers[0]
        self._hanging = thread
        return None
