"""Groups splits into tasks."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from laketier.spi import LakeSplit


def group_splits(splits: Sequence[LakeSplit], tasks: int) -> list[tuple[LakeSplit, ...]]:
    """Spread splits over at most ``tasks`` groups of about the same bytes (rows, where bytes are unknown).

    The largest go first, each to the lightest group. Within a group, the plan's order is kept. No group is empty.
    """
    if tasks < 1:
        raise ValueError(f"{tasks} tasks can't read anything")
    weights = {id(split): split.bytes or split.rows or 1 for split in splits}
    lightest: list[tuple[int, int]] = [(0, index) for index in range(min(tasks, len(splits)))]
    groups: list[list[LakeSplit]] = [[] for _ in lightest]
    for split in sorted(splits, key=lambda s: -weights[id(s)]):
        load, index = heapq.heappop(lightest)
        groups[index].append(split)
        heapq.heappush(lightest, (load + weights[id(split)], index))
    return [tuple(sorted(group, key=lambda s: s.index)) for group in groups]
