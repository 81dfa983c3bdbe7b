"""Answers of a table, and how far those of two builds agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laketier.spi import SCORE, SearchRequest, SearchSnapshot, TextQuery

Answer = list[tuple[int, float]]
"""The ids of the rows that were found and their scores, the best first."""

LAST_BITS = 1e-5
"""The part by which scores may differ that are sums of the same 32-bit floats in another order."""


@dataclass(frozen=True)
class Agreement:
    """How far the answers to the same questions agree.

    Attributes:
        questions: The questions.
        answered: Those that found a row.
        rows: The rows that they found.
        equal: The questions with the same ids in the same order and the same scores, to the last bit.
        last_bits: The further ones whose ids and scores are the same within `LAST_BITS`; rows of nearly equal score
            may have another place, or another of them is beyond the last place.
        different: The numbers of all others.
        largest: The largest difference of two scores of one row, as part of the score.
    """

    questions: int
    answered: int
    rows: int
    equal: int
    last_bits: int
    different: tuple[int, ...]
    largest: float

    @property
    def agrees(self) -> bool:
        """Whether no question has another answer."""
        return not self.different


def answers(snapshot: SearchSnapshot, questions: Sequence[TextQuery], *, k: int, key: str = "id") -> list[Answer]:
    """Ask a snapshot.

    Args:
        snapshot: The snapshot.
        questions: The questions.
        k: The rows of each answer, at most.
        key: The column of whole numbers that tells rows apart.

    Returns:
        One answer for each question.
    """
    found = []
    for question in questions:
        rows = snapshot.search(SearchRequest(query=question, k=k, columns=(key,))).rows
        found.append(list(zip(rows[key].to_pylist(), rows[SCORE].to_pylist(), strict=True)))
    return found


def agreement(expected: Sequence[Answer], found: Sequence[Answer], *, k: int) -> Agreement:
    """Compare answers.

    Args:
        expected: The answers of the one.
        found: Those of the other, to the same questions.
        k: The rows that were asked for.

    Returns:
        How far they agree.
    """
    equal, last_bits, different, largest = 0, 0, [], 0.0
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        largest = max(largest, _largest(one, other))
        if one == other:
            equal += 1
        elif _nearly(one, other, k):
            last_bits += 1
        else:
            different.append(number)
    answered = sum(map(bool, expected))
    rows = sum(map(len, expected))
    return Agreement(len(expected), answered, rows, equal, last_bits, tuple(different), largest)


def _largest(one: Answer, other: Answer) -> float:
    scores = dict(other)
    return max((abs(score - scores[row]) / abs(score or 1.0) for row, score in one if row in scores), default=0.0)


def _nearly(one: Answer, other: Answer, k: int) -> bool:
    if len(one) != len(other) or not all(_close(a, b) for (_, a), (_, b) in zip(one, other, strict=True)):
        return False
    first, second = dict(one), dict(other)
    if not all(_close(first[row], second[row]) for row in first.keys() & second.keys()):
        return False
    # Only rows that all but tie for the last place may be in one answer and not in the other.
    apart = [first.get(row, second.get(row, 0.0)) for row in first.keys() ^ second.keys()]
    return not apart or (len(one) == k and all(_close(score, one[-1][1]) for score in apart))


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= LAST_BITS * max(abs(one), abs(other), 1e-30)
