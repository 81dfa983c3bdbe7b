"""Which of the steps of a request are decided on."""

from __future__ import annotations

from itertools import pairwise

import pytest

from laketier_conformance.interposed.runs import between_the_first_and_the_last, spread


@pytest.mark.parametrize("total", [0, 1, 99, 100, 101, 110, 111, 135, 136, 161, 300, 1000])
def test_of_many_steps_some_between_are_passed_over(total: int) -> None:
    """The first hundred are taken each, whoever calls it, and the last ten; between them about 25, evenly."""
    between = between_the_first_and_the_last(total)
    last = range(max(100, total - 10), total)
    assert len(between) <= 25
    assert not {*between} & {*range(100), *last}
    taken = sorted({*range(min(100, total)), *between, *last})
    gaps = [after - before for before, after in pairwise(taken)]
    assert (taken[0], taken[-1]) == (0, total - 1) if total else not taken
    assert max(gaps, default=1) == max(1, between.step if between else 1)
    assert (between.step == 1) == (total <= 135), "nothing is passed over while 25 are enough"


@pytest.mark.parametrize(("total", "most"), [(0, 3), (1, 3), (3, 3), (4, 3), (17, 3), (100, 7), (5, 0), (0, 0)])
def test_steps_are_drawn_evenly_and_each_has_its_turn(total: int, most: int) -> None:
    for seed in range(5):
        drawn = spread(total, most, seed)
        assert set(drawn) <= set(range(total))
        assert len(drawn) <= most if most else len(drawn) == total
        assert bool(drawn) == bool(total), "one at least, where there is one"
    stride = max(1, -(-total // most)) if most else 1
    assert sorted(step for seed in range(700, 700 + stride) for step in spread(total, most, seed)) == [*range(total)]
