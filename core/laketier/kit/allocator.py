"""The C library's allocator: by default it keeps what was freed, for each thread by itself."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENAS = -1, -2, -3, -8
_SMALL = 128 * 1024


def give_back_memory() -> bool:
    """Have this process give memory back to the system as soon as it is freed, and share what is free among its
    threads, for as long as it lives. Call it before threads of libraries start: those that are there keep their own.
    It costs some CPU time.

    Returns:
        Whether the C library does so. Only glibc (most of Linux) can be told.
    """
    try:
        option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    settings = ((_ARENAS, 1), (_TRIM_THRESHOLD, _SMALL), (_MMAP_THRESHOLD, _SMALL), (_TOP_PAD, 0))
    return [option(name, value) for name, value in settings] == [1] * len(settings)
