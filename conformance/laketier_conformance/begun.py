"""Threads that began in a block: what they do after it is the block's own doing, so it ends when they have ended."""

from __future__ import annotations

import concurrent.futures.thread
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 20.0
_EACH_SECONDS = 0.005


@contextmanager
def threads_have_ended() -> Iterator[None]:
    """The block, and then the work of each thread of Python that began in it. A thread of a pool waits for more work
    without an end; those of libraries below Python are not known."""
    before = set(threading.enumerate())
    yield
    over = time.monotonic() + _PATIENCE_SECONDS
    for thread in set(threading.enumerate()) - before:
        while thread.is_alive() and not _is_idle(thread) and time.monotonic() < over:
            thread.join(_EACH_SECONDS)


def _is_idle(thread: threading.Thread) -> bool:
    """Of a pool, and it waits for work."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - there is no other way
    return frame is not None and frame.f_code.co_filename == concurrent.futures.thread.__file__
