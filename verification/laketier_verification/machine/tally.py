"""How often what happened, so that a run in which nothing happened is told from one in which nothing went wrong."""

from __future__ import annotations

from collections import Counter


class Tally:
    """Counts of one format's run."""

    def __init__(self) -> None:
        self.examples = 0
        self.steps = 0
        self.comparisons = 0
        self.outcomes: Counter[str] = Counter()

    def count(self, outcome: object) -> None:
        self.outcomes[outcome if isinstance(outcome, str) else getattr(outcome, "__name__", str(outcome))] += 1

    def __str__(self) -> str:
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        return f"{self.examples} histories, {self.steps} steps, {self.comparisons} comparisons; {told}"
