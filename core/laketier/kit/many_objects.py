"""Many objects made at once, without the collector of cycles looking through them again and again.

Python looks for cycles each time that some number of objects was made. While the 100,000 files of a table are decoded,
or planned, nothing goes, so each look is for nothing, and they take half of the time.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_holders = 0
_was_on = False


@contextmanager
def making_many_objects() -> Iterator[None]:
    """Make objects that stay. Cycles are collected again when the last thread is done; objects without one go at once,
    as always. Leaves the collector off where somebody else turned it off."""
    global _holders, _was_on
    with _LOCK:
        if not _holders:
            _was_on = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _LOCK:
            _holders = max(_holders - 1, 0)  # a process that was forked within has none
            if not _holders and _was_on:
                gc.enable()


def _begin_anew() -> None:
    """In a forked process there is only the thread that forked, and another may have been making objects."""
    global _LOCK, _holders
    _LOCK = threading.Lock()
    if _holders and _was_on:
        gc.enable()
    _holders = 0


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)
