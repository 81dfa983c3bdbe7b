"""When somebody answered last: a plugin, a harness, or another process. Each new process of the suite imports this, so
it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

_at = [monotonic()]
_harnesses = [0]


def heard() -> None:
    """Somebody answered."""
    _at[0] = monotonic()


def silent() -> float:
    """Seconds since then."""
    return monotonic() - _at[0]


@contextmanager
def asking_a_harness() -> Iterator[None]:
    """In the block, who is waited for is a harness."""
    _harnesses[0] += 1
    heard()
    try:
        yield
    finally:
        _harnesses[0] -= 1
        heard()


def is_a_harness_asked() -> bool:
    """Whether a harness is waited for."""
    return _harnesses[0] > 0
