"""Series of the suite's `test_series.py`: the same seed, the same series, and the option that draws more."""

from __future__ import annotations

import argparse

import pytest

from laketier_conformance.plugin import FIRST_SEED, series_seeds
from laketier_conformance.series.drawn import Drawn, draw
from laketier_conformance.series.other_looks import LOOKS
from laketier_conformance.series.other_steps import OTHERS
from laketier_conformance.series.shapes import SHAPES
from laketier_conformance.series.steps import ROUNDS
from laketier_conformance.test_series import SEEDS

SEED = SEEDS["plain"]
STEPS = [step for step in (*ROUNDS, *OTHERS) if False in step.of]


def drawn(length: int, *seeds: int) -> dict[int, tuple[Drawn, ...]]:
    return dict(draw(STEPS, LOOKS, length, seeds))


def test_a_seed_draws_the_same_each_time() -> None:
    length = SHAPES["plain"].steps
    assert drawn(length, 7) == drawn(length, 7)
    assert drawn(length, 7)[7] != drawn(length, 8)[8]


def test_most_steps_are_in_the_series_that_each_run_has() -> None:
    """In a table of each feature, as often as they are many."""
    names = [each.step.name for each in drawn(SHAPES["plain"].steps, SEED)[SEED]]
    assert len(set(names)) >= len(STEPS) / 2
    looks = {look.name for each in drawn(SHAPES["plain"].steps, SEED)[SEED] for look in each.looks}
    assert looks == {look.name for look in LOOKS}


def test_steps_and_looks_are_told_apart_by_their_names() -> None:
    for names in ([step.name for step in (*ROUNDS, *OTHERS)], [look.name for look in LOOKS]):
        assert len(set(names)) == len(names)


def test_the_option_draws_more_or_one() -> None:
    assert series_seeds("3") == (FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2)
    assert series_seeds("@17") == (17,)
    for given in ("", "@", "-1", "x", "\N{SUPERSCRIPT TWO}"):
        with pytest.raises(argparse.ArgumentTypeError):
            series_seeds(given)
