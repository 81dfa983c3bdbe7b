"""Reciprocal rank fusion."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from laketier.kit.fusion import fused

RANKINGS = st.lists(st.lists(st.integers(0, 20), unique=True), max_size=4)


@given(RANKINGS, st.integers(0, 100))
def test_the_score_is_the_sum_over_the_rankings(rankings: list[list[int]], constant: int) -> None:
    found = fused(rankings, constant)
    rows = {row for ranking in rankings for row in ranking}
    assert {row for row, _ in found} == rows
    for row, score in found:
        exact = sum(Fraction(1, constant + ranking.index(row) + 1) for ranking in rankings if row in ranking)
        assert abs(score - exact) < 1e-12
    assert found == sorted(found, key=lambda each: (-each[1], each[0]))


@given(RANKINGS)
def test_the_order_of_two_rankings_does_not_matter(rankings: list[list[int]]) -> None:
    two = rankings[:2]
    assert fused(two, 60.0) == fused(two[::-1], 60.0)


def test_a_row_counts_once_per_ranking() -> None:
    assert fused([[7, 7, 8]], 0.0) == [(7, 1.0), (8, 0.5)]
