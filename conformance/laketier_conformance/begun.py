"""Threads that began in a block: what they do after it is the block's own doing, so it ends when they have ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 20.0
_NOBODY_WAITS = re.compile(r"_[0-9]+\Z|\ADummy-[0-9]+\Z")
"""Of a pool; or begun below Python, and known to it since it called something that asked for its thread."""


@contextmanager
def threads_have_ended() -> Iterator[None]:
    """The block, and then the work of each thread of Python that began in it. One of a pool waits for more work without
    an end, so nobody waits for it; nor for those of libraries below Python, which can't be joined."""
    before = set(threading.enumerate())
    yield
    over = time.monotonic() + _PATIENCE_SECONDS
    for thread in set(threading.enumerate()) - before:
        if not _NOBODY_WAITS.search(thread.name):
            thread.join(max(0.0, over - time.monotonic()))
