"""Rounds that are out of time: whatever tasks were run, each row is published once, and each bucket gets on."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from laketier.rounds.partial import publishable_tasks, required_tasks
from laketier.rounds.splits import WEIGHT_OF_A_TASK, split_groups
from laketier.spi import LogOffsets, LogRange, LogSplit

BIG = WEIGHT_OF_A_TASK * 100


def _split(bucket: str, start: int, end: int, size: int = BIG) -> LogSplit:
    return LogSplit(bucket=bucket, start=start, end=end, bytes=size)


def test_an_unread_range_ends_its_bucket_and_no_other() -> None:
    groups = [[_split("a", 0, 5)], [_split("a", 5, 9)], [_split("a", 9, 12)], [_split("b", 3, 4)]]
    wanted = LogRange(LogOffsets({"a": 0, "b": 3}), LogOffsets({"a": 12, "b": 4}))
    assert publishable_tasks(groups, {0, 1, 2, 3}, wanted) == (frozenset({0, 1, 2, 3}), wanted.end)
    assert publishable_tasks(groups, {0, 2, 3}, wanted) == (frozenset({0, 3}), LogOffsets({"a": 5, "b": 4}))
    assert publishable_tasks(groups, set(), wanted) == (frozenset(), wanted.start)


def test_a_task_that_is_left_out_takes_its_other_buckets_with_it() -> None:
    groups = [[_split("a", 0, 5)], [_split("a", 5, 9), _split("b", 0, 4)], [_split("b", 4, 6)]]
    wanted = LogRange(LogOffsets({"a": 0, "b": 0}), LogOffsets({"a": 9, "b": 6}))
    assert publishable_tasks(groups, {1, 2}, wanted) == (frozenset(), wanted.start)
    assert publishable_tasks(groups, {0, 2}, wanted) == (frozenset({0}), LogOffsets({"a": 5, "b": 0}))


def test_parts_of_one_offset_are_published_together() -> None:
    """A file of a landing zone is one offset, and may be read by several tasks."""
    groups = [[_split("files", 0, 1)], [_split("files", 0, 1)], [_split("files", 1, 2)]]
    wanted = LogRange(LogOffsets({"files": 0}), LogOffsets({"files": 2}))
    assert required_tasks(groups) == [True, True, False]
    assert publishable_tasks(groups, {0, 2}, wanted) == (frozenset(), wanted.start)
    assert publishable_tasks(groups, {0, 1}, wanted) == (frozenset({0, 1}), LogOffsets({"files": 1}))


def test_a_task_that_must_run_takes_those_with_it_that_share_its_offsets() -> None:
    """However far it goes beyond the bucket's first split, and whichever of them comes first in the plan."""
    groups = [[_split("a", 0, 2)], [_split("a", 1, 6)], [_split("a", 0, 1)], [_split("a", 4, 8)], [_split("a", 8, 9)]]
    assert required_tasks(groups) == [True, True, True, True, False]
    crossed = [[_split("a", 0, 2)], [_split("a", 1, 6), _split("b", 0, 9)], [_split("b", 3, 5)], [_split("c", 0, 1)]]
    assert required_tasks(crossed) == [True, True, True, True]


def test_a_bucket_of_which_nothing_was_read_ends_where_it_began() -> None:
    """Also where its round does not say from where, or a task began before that."""
    groups = [[_split("a", 0, 5)], [_split("b", 0, 5)]]
    wanted = LogRange(LogOffsets({"b": 3}), LogOffsets({"a": 5, "b": 5}))
    kept, end = publishable_tasks(groups, set(), wanted)
    assert (kept, end) == (frozenset(), LogOffsets({"a": 0, "b": 3}))
    assert (type(kept), type(end)) == (frozenset, LogOffsets)


def test_a_bucket_that_goes_on_shares_no_task_with_others() -> None:
    small = BIG // 3
    groups = split_groups(
        [*(_split("a", i, i + 1, small) for i in range(4)), _split("b", 0, 1, 1), _split("c", 0, 1, 1)]
    )
    assert [[split.bucket for split in group] for group in groups] == [["a"] * 3, ["a"], ["b", "c"]]


@st.composite
def _plans(draw: st.DrawFn) -> list[LogSplit]:
    """Splits of some buckets: cut anywhere, light or heavy, some of one offset in several parts."""
    splits: list[LogSplit] = []
    for bucket in "abc"[: draw(st.integers(1, 3))]:
        offset = 0
        for _ in range(draw(st.integers(1, 6))):
            length = draw(st.integers(1, 4))
            parts = draw(st.integers(1, 3)) if length == 1 else 1
            for part in range(parts):
                size = draw(st.sampled_from([1, BIG // 3, BIG]))
                splits.append(LogSplit(bucket=bucket, start=offset, end=offset + length, bytes=size, payload=part))
            offset += length
    return splits


@given(_plans(), st.data())
def test_rounds_get_there_whatever_is_left_unread(plan: list[LogSplit], data: st.DataObject) -> None:
    end = LogOffsets({split.bucket: max(s.end for s in plan if s.bucket == split.bucket) for split in plan})
    at = LogOffsets(dict.fromkeys(end, 0))
    published: Counter[tuple[str, int, int]] = Counter()
    while at != end:
        wanted = LogRange(at, end)
        groups = split_groups([split for split in plan if split.start >= at[split.bucket]])
        must = required_tasks(groups)
        run = {index for index, needed in enumerate(must) if needed or data.draw(st.booleans())}
        kept, then = publishable_tasks(groups, run, wanted)
        assert kept <= run
        assert all(then[bucket] > at[bucket] or at[bucket] == end[bucket] for bucket in end), "each bucket gets on"
        rows = [split for index in kept for split in groups[index]]
        published.update((split.bucket, split.start, split.payload) for split in rows)
        assert all(at[split.bucket] <= split.start and split.end <= then[split.bucket] for split in rows)
        at = then
    assert published == Counter((split.bucket, split.start, split.payload) for split in plan)
