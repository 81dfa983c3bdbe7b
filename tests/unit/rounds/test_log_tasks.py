"""What a task costs, and which splits share one."""

from __future__ import annotations

import pytest

from laketier.rounds.splits import WEIGHT_OF_A_TASK, split_groups, weight_of
from laketier.spi import LogSplit


def _files(count: int, size: int) -> list[LogSplit]:
    return [LogSplit(bucket="files", start=i, end=i + 1, bytes=size) for i in range(count)]


def test_bytes_and_offsets_are_of_one_weight() -> None:
    assert weight_of(LogSplit(bucket="0", start=10, end=1_010)) == 1_000
    assert weight_of(LogSplit(bucket="files", start=3, end=4, bytes=100_000)) == 1_000
    assert weight_of(LogSplit(bucket="files", start=3, end=4, bytes=7)) == 1, "nothing is for free"


@pytest.mark.parametrize(("count", "size", "tasks"), [(1_000, 1_000, 1), (4, 30_000_000, 4), (8, 12_000_000, 4)])
def test_small_splits_share_a_task_and_big_ones_do_not(count: int, size: int, tasks: int) -> None:
    splits = _files(count, size)
    groups = split_groups(splits)
    assert len(groups) == tasks
    assert [split for group in groups for split in group] == splits
    assert all(len(group) == 1 or sum(map(weight_of, group)) <= WEIGHT_OF_A_TASK for group in groups)


def test_a_split_is_cut_into_even_parts_that_leave_nothing_out() -> None:
    whole = LogSplit(bucket="0", start=2, end=12, bytes=100, payload=("a", 1))
    assert [(part.start, part.end, part.bytes) for part in whole.cut(4)] == [(2, 5, None), (5, 8, None), (8, 12, None)]
    assert {part.payload for part in whole.cut(4)} == {("a", 1)}
    assert list(LogSplit(bucket="0", start=5, end=5).cut(4)) == []
