"""How far a round got whose tasks were not all run: a pure rule over the plan.

A round that is out of time leaves the rest of its range to the next one. What it publishes must be one piece per
bucket, from the start of the range on: only then do the offsets in its token say which rows are in the table.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from laketier.spi import LogOffsets, LogRange, LogSplit

Groups = Sequence[Sequence[LogSplit]]
"""The splits of each task, those of one bucket in the order of their offsets."""


def required(groups: Groups) -> list[bool]:
    """Which tasks must be run, whatever time it is, so that each bucket gets on: those that hold its first offsets, and
    what shares offsets with these."""
    bounds: dict[str, int] = {}
    for group in groups:
        for split in group:
            bounds.setdefault(split.bucket, split.end)
    found = [False] * len(groups)
    grown = True
    while grown:
        grown = False
        for index, group in enumerate(groups):
            if not found[index] and any(split.start < bounds[split.bucket] for split in group):
                found[index] = grown = True
                for split in group:
                    bounds[split.bucket] = max(bounds[split.bucket], split.end)
    return found


def reached(groups: Groups, run: Set[int], wanted: LogRange) -> tuple[frozenset[int], LogOffsets]:
    """Of the tasks that were ``run`` (by index), those whose rows may be published, and the end of what they hold.

    A task that was run, but holds a row behind one that was not read, is left out as a whole, and its rows are read
    again: the end would say that the missing ones are in the table.
    """
    unread: dict[str, int] = {}
    kept = set(range(len(groups)))
    dropped = kept - run
    while dropped:
        kept -= dropped
        for index in dropped:
            for split in groups[index]:
                unread[split.bucket] = min(split.start, unread.get(split.bucket, split.start))
        dropped = {i for i in kept if any(split.start >= unread.get(split.bucket, split.end) for split in groups[i])}
    ends = {bucket: max(wanted.start.get(bucket, 0), unread.get(bucket, end)) for bucket, end in wanted.end.items()}
    return frozenset(kept), LogOffsets(ends)
