"""How often, and how patiently, a commit is tried."""

from __future__ import annotations

from dataclasses import dataclass

import tenacity


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how patiently a round is published. Waits are exponential with full jitter.

    ``conflicts``: attempts lost to other commits, which are normal. ``unknowns``: attempts that ended in anything
    else and had not landed when the table was looked at.
    """

    conflicts: int = 50
    unknowns: int = 3
    first_wait_seconds: float = 0.02
    longest_wait_seconds: float = 2.0

    def retrying(self, again: type[Exception]) -> tenacity.Retrying:
        """Calls a function until it raises no ``again``; when to end is the function's to say."""
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(again),
            wait=tenacity.wait_random_exponential(multiplier=self.first_wait_seconds, max=self.longest_wait_seconds),
            stop=tenacity.stop_never,
            reraise=True,
        )


DEFAULT_POLICY = RetryPolicy()
