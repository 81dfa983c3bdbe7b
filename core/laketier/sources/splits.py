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
    """Small splits share a task; in the order of the plan."""
    return joined_groups([(split,) for split in splits])


def joined_groups(lots: Sequence[tuple[LogSplit, ...]]) -> list[tuple[LogSplit, ...]]:
    """`split_groups` of lots that stay together."""
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
