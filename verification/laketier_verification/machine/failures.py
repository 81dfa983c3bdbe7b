"""What can come between two steps of a round, at one of its failpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from laketier.kit.failpoints import FailpointError, observed


class Crash(BaseException):
    """The driver ends here, as far as that can be told within one process. No `except Exception` holds it."""


@dataclass(frozen=True, order=True)
class Point:
    """The ``hit``-th time that a round comes to the failpoint ``name``."""

    name: str
    hit: int

    def __repr__(self) -> str:
        return f"{self.name}@{self.hit}"


@contextmanager
def passing(passed: list[Point]) -> Iterator[None]:
    """Note the points that are passed, in order."""
    hits: dict[str, int] = {}

    def observe(name: str) -> None:
        hits[name] = hits.get(name, 0) + 1
        passed.append(Point(name, hits[name]))

    with observed(observe):
        yield


@contextmanager
def interrupted(at: Point | None, act: Callable[[], None], times: int = 1) -> Iterator[list[str]]:
    """Act at a point, and, for ``times`` > 1, at the following hits of the same failpoint too. What the act itself
    passes does not count. Gives the names where it acted."""
    hits = 0
    acted: list[str] = []
    acting = False

    def observe(name: str) -> None:
        nonlocal hits, acting
        if acting or at is None or name != at.name:
            return
        hits += 1
        if at.hit <= hits < at.hit + times:
            acted.append(name)
            acting = True
            try:
                act()
            finally:
                acting = False

    with observed(observe):
        yield acted


def crash() -> None:
    raise Crash


def fail() -> None:
    raise FailpointError("a failure from below")
