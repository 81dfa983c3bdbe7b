"""Reciprocal rank fusion: one ranking made of several."""

from __future__ import annotations

from collections.abc import Sequence


def fused(rankings: Sequence[Sequence[int]], constant: float) -> list[tuple[int, float]]:
    """Rows and their scores, the best first: the sum of ``1 / (constant + rank)`` over the rankings that have the row,
    ranks from 1. Equal scores are in the order of the rows' numbers. A row counts once per ranking, by its best rank.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(dict.fromkeys(ranking), start=1):
            scores[row] = scores.get(row, 0.0) + 1.0 / (constant + rank)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))
