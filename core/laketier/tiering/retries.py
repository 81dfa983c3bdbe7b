"""The number of attempts at a commit, and the waits between them."""

from __future__ import annotations

from dataclasses import dataclass

import tenacity


@dataclass(frozen=True)
class RetryPolicy:
    """The number of attempts at a publish. Waits are exponential with full jitter. ``conflicts`` counts attempts
    that lost to other commits, which is normal. ``unknowns`` counts attempts with another failure, also before
    their effect, that had not landed when the table was read."""

    conflicts: int = 50
    unknowns: int = 3
    first_wait_seconds: float = 0.02
    longest_wait_seconds: float = 2.0

    def retrying(self, again: type[Exception]) -> tenacity.Retrying:
        """Call a function until it raises no ``again``. The function itself decides when to give up."""
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(again),
            wait=tenacity.wait_random_exponential(multiplier=self.first_wait_seconds, max=self.longest_wait_seconds),
        )


DEFAULT_POLICY = RetryPolicy()
