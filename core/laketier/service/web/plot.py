"""How old the lake was over the last rounds of a table, and what they left, as SVGs made here."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.service.state import Ending, RoundRecord, TableStatus
from laketier.service.web.markup import Html, html, joined
from laketier.service.web.texts import clock, number, seconds

_WIDTH, _HEIGHT = 560.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 10.0, 16.0, 26.0
_PUBLISHED = {Ending.TIERED, Ending.FORCE_COMPLETED}
_BROKEN = {Ending.FAILED, Ending.STOPPED, Ending.EXPIRED}


def ages(status: TableStatus, rounds: Sequence[RoundRecord]) -> list[tuple[int, float]]:
    """(when, how old what the lake held was, in s, at most) at the corners of the saw that rounds make: age grows with
    time, and falls to a round's own duration when that ends and left nothing. ``rounds``: newest first."""
    points: list[tuple[int, float]] = []
    before: int | None = None
    for each in reversed(rounds):
        if each.ending is Ending.TIERED:
            if before is not None:
                points.append((each.ended_at, (each.ended_at - before) / 1000))
            points.append((each.ended_at, (each.ended_at - each.began_at) / 1000))
            before = each.began_at
    if points and status.behind_seconds is not None:
        points.append((status.at, status.behind_seconds))
    return points


def age_plot(status: TableStatus, rounds: Sequence[RoundRecord]) -> Html:
    """The plot, or a line that says why there is none. ``rounds``: newest first."""
    points = ages(status, rounds)
    if len(points) < 2:
        return html('<p class="none">No round was published yet.</p>')
    target = float(status.table.freshness_seconds)
    begin, end = points[0][0], max(points[-1][0], points[0][0] + 1)
    top = max(target, *(age for _, age in points)) * 1.1

    def across(at: int) -> str:
        return f"{_LEFT + (at - begin) / (end - begin) * (_WIDTH - _LEFT - _RIGHT):.1f}"

    def up(age: float) -> str:
        return f"{_HEIGHT - _BOTTOM - age / top * (_HEIGHT - _TOP - _BOTTOM):.1f}"

    broken = joined(
        html('<path class="broken" d="M{x} {y}v-7"><title>{text}</title></path>', x=across(each.ended_at),
             y=up(0), text=f"{clock(each.ended_at)} {each.ending.value}")
        for each in rounds if each.ending in _BROKEN and begin <= each.ended_at <= end
    )  # fmt: skip
    labels = joined(
        html('<text x="{x}" y="{y}" text-anchor="end">{text}</text>', x=_LEFT - 6, y=y, text=text)
        for y, text in _levels(target, top, up)
    )
    return html(
        '<svg viewBox="0 0 {width} {height}" role="img" aria-label="How old the lake was, over time">'
        '<path class="axis" d="M{left} {top}V{bottom}H{right}"/>'
        '<path class="target" d="M{left} {target}H{right}"/><path class="age" d="M{line}"/>{broken}{labels}'
        '<text x="{left}" y="{under}">{begin}</text><text x="{right}" y="{under}" text-anchor="end">{end}</text></svg>'
        '<p class="legend"><span><i class="age"></i>at most so old</span><span><i class="target"></i>freshness</span>'
        '<span><i class="broken"></i>a round that failed</span></p>',
        width=_WIDTH, height=_HEIGHT, left=_LEFT, right=_WIDTH - _RIGHT, top=_TOP, bottom=up(0),
        target=up(target), line=" L".join(f"{across(at)} {up(age)}" for at, age in points), broken=broken,
        labels=labels, under=_HEIGHT - 8, begin=clock(begin), end=clock(end),
    )  # fmt: skip


def lag_plot(status: TableStatus, rounds: Sequence[RoundRecord]) -> Html:
    """The offsets that published rounds left in the source, as bars; a line where there is nothing to draw.
    ``rounds``: newest first."""
    left = [(each, each.lag_offsets or 0) for each in reversed(rounds) if each.ending in _PUBLISHED]
    if not any(offsets for _, offsets in left):
        return html('<p class="none">Nothing: each round read all that was there.</p>')
    begin, end = left[0][0].ended_at, max(left[-1][0].ended_at, left[0][0].ended_at + 1, status.at)
    most, room, height = max(offsets for _, offsets in left), _WIDTH - _LEFT - _RIGHT, _HEIGHT / 2
    bottom = height - _BOTTOM
    bars = joined(
        html('<path class="left" d="M{x} {bottom}V{y}"><title>{text}</title></path>',
             x=f"{_LEFT + 3 + (each.ended_at - begin) / (end - begin) * (room - 6):.1f}", bottom=bottom,
             y=f"{bottom - offsets / most * (bottom - _TOP):.1f}", text=f"{clock(each.ended_at)} {offsets:,} offsets")
        for each, offsets in left if offsets
    )  # fmt: skip
    return html(
        '<svg viewBox="0 0 {width} {height}" role="img" aria-label="Offsets left in the source, over time">'
        '<path class="axis" d="M{left} {top}V{bottom}H{right}"/>{bars}'
        '<text x="{beside}" y="{top_text}" text-anchor="end">{most}</text>'
        '<text x="{beside}" y="{bottom_text}" text-anchor="end">0</text>'
        '<text x="{left}" y="{under}">{begin}</text><text x="{right}" y="{under}" text-anchor="end">{end}</text></svg>'
        '<p class="legend"><span><i class="left"></i>offsets left by a round</span></p>',
        width=_WIDTH, height=height, left=_LEFT, right=_WIDTH - _RIGHT, top=_TOP, bottom=bottom, bars=bars,
        beside=_LEFT - 6, top_text=_TOP + 4, bottom_text=bottom + 4, most=number(most), under=height - 8,
        begin=clock(begin), end=clock(end),
    )  # fmt: skip


def _levels(target: float, top: float, up: object) -> list[tuple[str, str]]:
    assert callable(up)
    most = top / 1.1
    levels = [0.0, target]
    # Two labels need room between them.
    if most - target > 0.15 * top:
        levels.append(most)
    return [(f"{float(up(level)) + 4:.1f}", seconds(level)) for level in levels]
