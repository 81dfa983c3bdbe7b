"""Decides which tasks of a round that ran out of time may be published. A pure rule over the plan.

A round that is out of time leaves the rest of its range to the next one. It publishes one contiguous range per bucket,
from the start of its range on: only then do the offsets in its token say which rows are in the table.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from laketier.spi import LogOffsets, LogRange, LogSplit

Groups = Sequence[Sequence[LogSplit]]
"""The splits of each task, those of one bucket in the order of their offsets."""


def required_tasks(groups: Groups) -> list[bool]:
    """For each task whether it must run, also when time is up, so that every bucket makes progress: tasks with the
    first offsets of a bucket, and tasks that share offsets with these."""
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


def publishable_tasks(groups: Groups, run: Set[int], wanted: LogRange) -> tuple[frozenset[int], LogOffsets]:
    """Choose the tasks whose rows may be published.

    A task that read rows behind unread ones is left out as a whole, and the next round reads its rows again. Otherwise
    the published end offset would claim that the unread rows are in the table.

    Args:
        groups: The splits of each task.
        run: The indices of the tasks that were run.
        wanted: The range of the round.

    Returns:
        The indices of the tasks to publish, and the offsets that they end at.
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
