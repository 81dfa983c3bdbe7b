"""Tells failures of `publish` that are certain from those that are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from laketier.spi.errors import Conflict, LaketierError, NotBegun, Refused, UnknownOutcome


@contextmanager
def before_effect(where: str) -> Iterator[None]:
    """For the steps of `LakeCommitter.publish` before its effect: looks at the table, checks of results, and documents
    that nothing points at yet. An error in here is raised as `NotBegun`, so nobody takes it for an unknown outcome.
    What says more passes as it is: `Conflict`, `Refused`, `UnknownOutcome`.

    **The effect itself must not be in here**, nor any request that a store may carry out after it answered with an
    error. ``where`` names the table.
    """
    try:
        yield
    except (Conflict, NotBegun, Refused, UnknownOutcome):
        raise
    except Exception as error:
        raise _told(error, where) from error


def _told(error: Exception, where: str) -> NotBegun:
    what, fix = "a step before the commit failed; nothing was published", "Remove the cause and run it again."
    if not isinstance(error, LaketierError):
        return NotBegun(what, where=where, why=f"{type(error).__name__}: {error}", fix=fix)
    why = error.what if error.why is None else f"{error.what}, because {error.why}"
    return NotBegun(what, where=error.where or where, why=why, fix=error.fix or fix)
