"""Stamps of positions (`TableLog.stamp`): how one is made of several, and which of them tell two histories apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_JOINED = "each:"


def joined_stamps(stamps: Mapping[str, str | None]) -> str | None:
    """Make the stamp of a position of the stamps of its buckets, or of groups of them. Then one bucket whose records
    expired hides no other: what one of two stamps lacks says nothing. A stamp has at most 1000 letters.

    Args:
        stamps: The stamp of each, by a name that it keeps. None where it has none, or not any more.

    Returns:
        The stamp. None where none of them has any.
    """
    known = {name: stamp for name, stamp in stamps.items() if stamp is not None}
    return _JOINED + json.dumps(known, sort_keys=True, separators=(",", ":")) if known else None


def stamps_differ(one: str | None, other: str | None) -> bool:
    """Whether two stamps of one position are of two histories. One that is lacking says nothing, as does one that was
    made in another way, by a source from before.

    Args:
        one: A stamp.
        other: Another one.

    Returns:
        Whether a bucket, or the whole where they are not joined, has another stamp in each.
    """
    if one is None or other is None or one == other:
        return False
    first, second = _parts(one), _parts(other)
    if first is None or second is None:
        return first is second
    return any(first[name] != second[name] for name in first.keys() & second.keys())


def _parts(stamp: str) -> Mapping[str, Any] | None:
    """None of a stamp that was not joined."""
    if not stamp.startswith(_JOINED):
        return None
    try:
        parts = json.loads(stamp.removeprefix(_JOINED))
    except (ValueError, RecursionError):
        return None
    return parts if isinstance(parts, dict) else None
