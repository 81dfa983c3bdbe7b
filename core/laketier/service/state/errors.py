"""Errors of the state store."""

from __future__ import annotations

from laketier.spi import LaketierError


class StateError(LaketierError):
    """The state database can't be used, or did not answer. Nothing is known to have changed; a call may be made again
    on the same store."""


class StateUnavailable(StateError):
    """The state database is away, takes no writes just now, or has no tables: nothing is wrong with what was asked, and
    the same call may well be answered later."""


class LeaseLost(StateError):
    """The lease is not (or no longer) held with this fence by this worker. Nothing was changed. The round must not be
    published: the table's watermark refuses its fence once a newer one has published."""
