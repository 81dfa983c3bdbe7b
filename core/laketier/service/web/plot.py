"""How old the lake was over the last rounds of a table, and what they left: where each line of a plot lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from laketier.service.state import LeaseEnd, RoundRecord, TableStatus
from laketier.service.web.texts import clock, seconds

_WIDTH, _HEIGHT = 560.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 10.0, 16.0, 26.0
_PUBLISHED = {LeaseEnd.TIERED, LeaseEnd.FORCE_COMPLETED}
_BROKEN = {LeaseEnd.FAILED, LeaseEnd.STOPPED, LeaseEnd.EXPIRED}


@dataclass(frozen=True, kw_only=True)
class _Plot:
    """The frame, in the units of an SVG; the moments of its left and its right end."""

    begin: int
    end: int
    bottom: float
    height: float = _HEIGHT
    width: float = _WIDTH
    left: float = _LEFT
    right: float = _WIDTH - _RIGHT
    top: float = _TOP


@dataclass(frozen=True, kw_only=True)
class AgePlot(_Plot):
    """``line``: the corners of the saw. ``broken`` (where, what) and ``labels`` (how high, what) are marks."""

    target: str
    line: Sequence[str]
    broken: Sequence[tuple[str, str]]
    labels: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class LagPlot(_Plot):
    """``bars``: where, how high, what. ``most``: the highest one's offsets."""

    most: int
    bars: Sequence[tuple[str, str, str]]


def ages(status: TableStatus, rounds: Sequence[RoundRecord]) -> list[tuple[int, float]]:
    """(when, how old what the lake held was, in s, at most) at the corners of the saw that rounds make: age grows with
    time, and falls to a round's own duration when that ends and left nothing. ``rounds``: newest first."""
    points: list[tuple[int, float]] = []
    before: int | None = None
    for each in reversed(rounds):
        if each.ending is LeaseEnd.TIERED:
            if before is not None:
                points.append((each.ended_at, (each.ended_at - before) / 1000))
            points.append((each.ended_at, (each.ended_at - each.began_at) / 1000))
            before = each.began_at
    if points and status.behind_seconds is not None:
        points.append((status.at, status.behind_seconds))
    return points


def age_plot(status: TableStatus, rounds: Sequence[RoundRecord]) -> AgePlot | None:
    """None as long as no round was published. ``rounds``: newest first."""
    points = ages(status, rounds)
    if len(points) < 2:
        return None
    target = float(status.table.freshness_seconds)
    begin, end = points[0][0], max(points[-1][0], points[0][0] + 1)
    top = max(target, *(age for _, age in points)) * 1.1

    def across(at: int) -> str:
        return f"{_LEFT + (at - begin) / (end - begin) * (_WIDTH - _LEFT - _RIGHT):.1f}"

    def up(age: float) -> float:
        return _HEIGHT - _BOTTOM - age / top * (_HEIGHT - _TOP - _BOTTOM)

    return AgePlot(
        begin=begin,
        end=end,
        bottom=up(0),
        target=f"{up(target):.1f}",
        line=[f"{across(at)} {up(age):.1f}" for at, age in points],
        broken=[
            (across(each.ended_at), f"{clock(each.ended_at)} {each.ending.value}")
            for each in rounds
            if each.ending in _BROKEN and begin <= each.ended_at <= end
        ],
        labels=_levels(target, top, up),
    )


def lag_plot(status: TableStatus, rounds: Sequence[RoundRecord]) -> LagPlot | None:
    """The offsets that published rounds left in the source; None where they left nothing. ``rounds``: newest first."""
    left = [(each, each.lag_offsets or 0) for each in reversed(rounds) if each.ending in _PUBLISHED]
    if not any(offsets for _, offsets in left):
        return None
    begin, end = left[0][0].ended_at, max(left[-1][0].ended_at, left[0][0].ended_at + 1, status.at)
    most, room, height = max(offsets for _, offsets in left), _WIDTH - _LEFT - _RIGHT, _HEIGHT / 2
    bottom = height - _BOTTOM
    bars = [
        (
            f"{_LEFT + 3 + (each.ended_at - begin) / (end - begin) * (room - 6):.1f}",
            f"{bottom - offsets / most * (bottom - _TOP):.1f}",
            f"{clock(each.ended_at)} {offsets:,} offsets",
        )
        for each, offsets in left
        if offsets
    ]
    return LagPlot(begin=begin, end=end, bottom=bottom, height=height, most=most, bars=bars)


def _levels(target: float, top: float, up: Callable[[float], float]) -> list[tuple[str, str]]:
    most = top / 1.1
    levels = [0.0, target]
    # Two labels need room between them.
    if most - target > 0.15 * top:
        levels.append(most)
    return [(f"{up(level) + 4:.1f}", seconds(level)) for level in levels]
