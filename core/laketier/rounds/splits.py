"""Groups the splits of a log into tasks."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import LogSplit

WEIGHT_OF_A_TASK = 256 * 1024
"""The weight of one task, about: small splits share a task, as each task makes at least one file."""
_BYTES_PER_OFFSET = 100


def weight_of(split: LogSplit) -> int:
    """The weight of a split, in offsets. Where the source knows the split's bytes, the number of offsets that so many
    bytes usually hold."""
    return split.end - split.start if split.bytes is None else max(1, split.bytes // _BYTES_PER_OFFSET)


def split_groups(splits: Sequence[LogSplit]) -> list[tuple[LogSplit, ...]]:
    """Group splits into tasks, in the order of the plan. Small splits share a task.

    A task that continues a bucket of an earlier task reads no other bucket: it may be left out when time is up.
    """
    groups: list[tuple[LogSplit, ...]] = []
    begun_in: dict[str, int] = {}
    weight, going_on = 0, None
    for split in splits:
        own = weight_of(split)
        last = len(groups) - 1
        goes_on = split.bucket if begun_in.get(split.bucket, last) < last else None
        if groups and weight + own <= WEIGHT_OF_A_TASK and goes_on == going_on:
            groups[-1] = (*groups[-1], split)
            weight += own
        else:
            going_on = split.bucket if split.bucket in begun_in else None
            groups.append((split,))
            weight = own
        begun_in.setdefault(split.bucket, len(groups) - 1)
    return groups


def joined_groups(parts: Sequence[tuple[LogSplit, ...]]) -> list[tuple[LogSplit, ...]]:
    """Put small parts into one task each; a part is never divided."""
    groups: list[tuple[LogSplit, ...]] = []
    weight = 0
    for part in parts:
        own = sum(map(weight_of, part))
        if groups and weight + own <= WEIGHT_OF_A_TASK:
            groups[-1] = (*groups[-1], *part)
            weight += own
        else:
            groups.append(part)
            weight = own
    return groups
