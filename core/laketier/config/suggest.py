"""Finds the nearest matches of misspelled keys."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CUTOFF = 0.8


def normalised(key: str) -> str:
    """A key without the marks that people vary: case, ``-``, ``_``, ``.`` and blanks."""
    return "".join(character for character in key.lower() if character.isalnum())


def nearest(key: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known key that was probably meant. None where no known key is similar."""
    by_form = {normalised(candidate): candidate for candidate in known}
    if normalised(key) in by_form:
        return by_form[normalised(key)]
    found = difflib.get_close_matches(normalised(key), by_form, n=1, cutoff=cutoff)
    return by_form[found[0]] if found else None


def is_near_miss(key: str, known: Iterable[str]) -> bool:
    """Whether ``key`` is unknown, but so similar to a known key that it must be a slip."""
    return nearest(key, known, cutoff=_CUTOFF) is not None


def did_you_mean(key: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """A sentence for an error: the nearest match; without one ``otherwise``, or all keys."""
    known = sorted(known)
    match = nearest(key, known)
    if match:
        return f"Did you mean {match!r}?"
    if otherwise is not None:
        return otherwise
    return f"Known keys: {', '.join(known)}." if known else "There are no keys at this place."
