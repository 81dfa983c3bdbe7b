"""When somebody answered last: a plugin, a harness, or another process. Each new process of the suite imports this, so
it imports nothing heavy."""

from __future__ import annotations

from time import monotonic

_at = [monotonic()]


def heard() -> None:
    """Somebody answered."""
    _at[0] = monotonic()


def silent() -> float:
    """Seconds since then."""
    return monotonic() - _at[0]
