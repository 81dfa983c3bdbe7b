"""Which splits of a log one task reads."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import LogSplit

WEIGHT_OF_A_TASK = 256 * 1024
"""Splits are put into one task up to about this weight, as each task makes at least one file."""
_BYTES_PER_OFFSET = 100


def weight_of(split: LogSplit) -> int:
    """What a split costs, beside others: offsets, or where the source knows its bytes, as many offsets as these
    usually are."""
    return split.end - split.start if split.bytes is None else max(1, split.bytes // _BYTES_PER_OFFSET)


def split_groups(splits: Sequence[LogSplit]) -> list[tuple[LogSplit, ...]]:
    """Small splits share a task; in the order of the plan. What goes on with a bucket that an earlier task began is not
    put together with other buckets: such a task may be left out when time is up."""
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


def joined_groups(lots: Sequence[tuple[LogSplit, ...]]) -> list[tuple[LogSplit, ...]]:
    """Small lots share a task; each lot stays together."""
    groups: list[tuple[LogSplit, ...]] = []
    weight = 0
    for lot in lots:
        own = sum(map(weight_of, lot))
        if groups and weight + own <= WEIGHT_OF_A_TASK:
            groups[-1] = (*groups[-1], *lot)
            weight += own
        else:
            groups.append(lot)
            weight = own
    return groups
