"""Threads that began in a block: what they do after it is the block's own doing, so it ends when they have ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 20.0
_OF_POOL = re.compile(r"_[0-9]+\Z")


@contextmanager
def threads_have_ended() -> Iterator[None]:
    """The block, and then the work of each thread of Python that began in it. One of a pool waits for more work without
    an end, so nobody waits for it; those of libraries below Python are not known."""
    before = set(threading.enumerate())
    yield
    over = time.monotonic() + _PATIENCE_SECONDS
    for thread in set(threading.enumerate()) - before:
        if not _OF_POOL.search(thread.name):
            thread.join(max(0.0, over - time.monotonic()))
