"""A score from a part of the mutants: the first ones in the order of a seed, each of which met all tests that reach it.

How many are drawn is said before any of them is tried. All that anybody knows of others, such as survivors that were
asked for by name, stays out of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from laketier_verification.mutants.results import NEAR, drawn
from laketier_verification.mutants.source import Key, Module

SURE = 0.95
"""How often the true share lies in the interval, over many samples."""


class NotFinished(Exception):
    """Some that were drawn have not met all tests."""


@dataclass(frozen=True)
class Sample:
    """The first ``count`` mutants of ``seed``."""

    count: int
    seed: int

    def keys(self, modules: Mapping[str, Module]) -> frozenset[Key]:
        """Who they are."""
        mutants = drawn((mutant for module in modules.values() for mutant in module.mutants), self.seed)
        return frozenset(mutant.key for mutant in mutants[: self.count])

    def refuse_unfinished(self, outcomes: Mapping[Key, str], keys: Iterable[Key], *, at_least: bool = False) -> None:
        """A survivor of first tests may be noticed yet, so a score with it would be too low, unless it is told as the
        least that it can be: ``at_least``. Raises `NotFinished`."""
        unfinished = {None} if at_least else {None, NEAR}
        left = [key for key in keys if outcomes.get(key) in unfinished]
        if left:
            raise NotFinished(
                f"{len(left)} of the {self.count} mutants drawn by seed {self.seed} have not met all tests yet; run "
                f"once more with --sample {self.count} --seed {self.seed}"
            )


def interval(noticed: int, of: int) -> tuple[float, float]:
    """The percentages between which the share of all lies: Wilson's, which also holds for few, and near to 100 %."""
    if not of:
        return 0.0, 100.0
    z = NormalDist().inv_cdf((1 + SURE) / 2)
    share, width = noticed / of, z * z / of
    middle = share + width / 2
    spread = z * math.sqrt(share * (1 - share) / of + width / (4 * of))
    low, high = ((middle + sign * spread) / (1 + width) for sign in (-1, 1))
    return 100 * max(0.0, low), 100 * min(1.0, high)
