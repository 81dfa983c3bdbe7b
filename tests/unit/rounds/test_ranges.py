"""The range that a round reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes import ChangeLog
from laketier.rounds import OnExpired, next_range
from laketier.rounds.ranges import MAX_EXPIRED_RANGES, NextRange, plan_around
from laketier.spi import BucketBounds, LogOffsets, LogRange, LogSplit, OffsetsExpired, StorageError, TableChanged


def test_a_new_table_reads_from_the_earliest() -> None:
    found = next_range(None, {"0": BucketBounds(3, 9), "1": BucketBounds(0, 0)})
    assert found.wanted.start == LogOffsets({"0": 3, "1": 0})
    assert found.wanted.end == LogOffsets({"0": 9, "1": 0})
    assert (found.source.start, found.source.end) == ("{}", '{"0":9,"1":0}')
    assert found.left == 0
    assert found.content is None


@pytest.mark.parametrize(("other", "left_at"), [(9_000, 9_000), (5_000, 8_000), (None, None)])
def test_what_is_left_is_as_new_as_its_newest_record(other: int | None, left_at: int | None) -> None:
    bounds = {"0": BucketBounds(0, 10, 8_000), "1": BucketBounds(0, 10, other), "2": BucketBounds(5, 5, 99_000)}
    found = next_range(None, bounds, most=10)
    assert (found.left, found.left_at) == (10, left_at)
    assert found.up_to(found.wanted.end).left_at == left_at
    assert found.up_to(found.wanted.start).left_at is None, "what a cut leaves may be newer"
    whole = next_range(None, bounds)
    assert (whole.left, whole.left_at) == (0, None)


def test_a_dropped_bucket_keeps_its_offset_and_a_new_one_begins_at_0() -> None:
    found = next_range(LogOffsets({"old": 5, "0": 2}), {"0": BucketBounds(0, 4), "new": BucketBounds(0, 8)})
    assert found.wanted.start == LogOffsets({"0": 2, "new": 0})
    assert found.source.start == '{"0":2,"old":5}', "the very text that the last round ended with"
    assert found.source.end == '{"0":4,"new":8,"old":5}'
    assert found.up_to(LogOffsets({"0": 3, "new": 7})).source.end == '{"0":3,"new":7,"old":5}', "however early it ends"


@pytest.mark.parametrize("latest", [7, 8], ids=["all that it had", "its beginning"])
def test_what_expired_of_a_bucket_that_came_later_is_an_error_too(latest: int) -> None:
    known, bounds = LogOffsets({"0": 2}), {"0": BucketBounds(0, 2), "new": BucketBounds(7, latest)}
    with pytest.raises(OffsetsExpired, match="offsets 0 to 6 of bucket 'new' expired"):
        next_range(known, bounds)
    found = next_range(known, bounds, on_expired=OnExpired.SKIP)
    assert (found.content, found.wanted.start) == ('skipped:{"new":[0,7]}', LogOffsets({"0": 2, "new": 7}))


def test_expired_offsets_are_an_error_unless_they_may_be_skipped() -> None:
    bounds = {"0": BucketBounds(10, 12)}
    with pytest.raises(OffsetsExpired, match="offsets 4 to 9 of bucket '0' expired"):
        next_range(LogOffsets({"0": 4}), bounds)
    found = next_range(LogOffsets({"0": 4}), bounds, on_expired=OnExpired.SKIP)
    assert found.wanted.start == LogOffsets({"0": 10})
    assert found.source.start == '{"0":4}'
    assert found.content == 'skipped:{"0":[4,10]}'


def test_a_table_that_is_ahead_of_its_log_is_refused() -> None:
    with pytest.raises(TableChanged, match="ends at offset 3, and the table has read up to 8"):
        next_range(LogOffsets({"0": 8}), {"0": BucketBounds(0, 3)})


def test_a_bucket_with_an_initial_offset_begins_there_and_in_one_piece() -> None:
    bounds = {"0": BucketBounds(10, 12, initial=0), "1": BucketBounds(0, 100)}
    found = next_range(None, bounds, most=10)
    assert found.wanted.start == LogOffsets({"0": 0, "1": 0})
    assert found.wanted.end == LogOffsets({"0": 12, "1": 10})
    assert (found.left, found.skipped) == (90, {})
    known = LogOffsets({"0": 4})
    with pytest.raises(OffsetsExpired, match="offsets 4 to 9"):
        next_range(known, bounds)
    later = next_range(LogOffsets({"0": 10}), {"0": bounds["0"]}, most=1)
    assert later.wanted.end == LogOffsets({"0": 11})


@pytest.mark.parametrize(("initial", "start"), [(None, 10), (0, 0), (4, 4), (-1, -1)])
def test_a_bucket_that_is_new_to_the_table_begins_where_its_log_says(initial: int | None, start: int) -> None:
    found = next_range(None, {"0": BucketBounds(10, 12, initial=initial)})
    assert (found.wanted.start, found.skipped) == (LogOffsets({"0": start}), {})
    assert (found.source.start, found.source.end) == ("{}", '{"0":12}')


def test_a_limit_is_no_limit_to_what_just_fits() -> None:
    bounds = {"0": BucketBounds(0, 3), "1": BucketBounds(0, 7)}
    for most in (10, 20, None):
        assert dict(next_range(None, bounds, most=most).wanted.end) == {"0": 3, "1": 7}
    assert dict(next_range(None, bounds, most=9).wanted.end) == {"0": 3, "1": 7}
    assert dict(next_range(None, bounds, most=5).wanted.end) == {"0": 2, "1": 4}


offsets = st.integers(min_value=0, max_value=10_000)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcde"), st.tuples(offsets, offsets)), st.integers(100, 2_000))
def test_limited_rounds_read_each_offset_once_and_end(held: dict[str, tuple[int, int]], most: int) -> None:
    bounds = {bucket: BucketBounds(min(pair), max(pair)) for bucket, pair in held.items()}
    total = sum(b.latest - b.earliest for b in bounds.values())
    committed: LogOffsets | None = None
    read = 0
    last = "{}"
    for _ in range(total // most + len(bounds) + 2):
        found = next_range(committed, bounds, most=most)
        assert found.source.start == last, "no offset between two rounds goes missing"
        assert found.wanted.offsets <= most + len(bounds)
        read += found.wanted.offsets
        last = found.source.end
        committed = LogOffsets.from_text(last)
        if not found.left:
            break
    assert read == total
    assert next_range(committed, bounds).wanted.is_empty


def _next(start: int, end: int) -> NextRange:
    return next_range(LogOffsets({"0": start}), {"0": BucketBounds(0, end)})


def test_a_round_goes_around_what_is_gone_and_says_so() -> None:
    found = _next(2, 12).around({"0": [(3, 4), (4, 5), (9, 20)], "other": [(0, 5)]})
    assert {type(offsets) for piece in found.pieces() for offsets in (piece.start, piece.end)} == {LogOffsets}
    assert {type(found.wanted.start), type(found.wanted.end)} == {LogOffsets}
    assert found.content == 'skipped:{"0":[3,5,9,12]}'
    assert [(dict(piece.start), dict(piece.end)) for piece in found.pieces()] == [
        ({"0": 2}, {"0": 3}),
        ({"0": 5}, {"0": 9}),
    ]
    assert (found.source.start, found.source.end) == ('{"0":2}', '{"0":12}')


def test_an_expired_range_after_an_expired_beginning_is_recorded_beside_it() -> None:
    expired = next_range(LogOffsets({"0": 1}), {"0": BucketBounds(3, 9)}, on_expired=OnExpired.SKIP)
    assert expired.around({"0": [(5, 6)]}).content == 'skipped:{"0":[1,3,5,6]}'
    assert expired.around({"0": [(3, 6)]}).content == 'skipped:{"0":[1,6]}'


def test_a_round_that_ends_earlier_has_no_stamp() -> None:
    """It is that of another end, and the next round would refuse to go on."""
    whole = _next(0, 9)
    stamped = replace(whole, source=replace(whole.source, stamp="of 9"))
    assert stamped.up_to(LogOffsets({"0": 9})).source.stamp == "of 9"
    assert stamped.around({"0": [(3, 4)]}).source.stamp == "of 9"
    assert stamped.up_to(LogOffsets({"0": 8})).source.stamp is None


def test_a_round_that_ends_before_an_expired_range_does_not_record_it() -> None:
    found = _next(0, 9).around({"0": [(2, 3), (6, 7)]})
    assert found.up_to(LogOffsets({"0": 5})).content == 'skipped:{"0":[2,3]}'
    assert found.up_to(LogOffsets({"0": 2})).content is None
    assert found.up_to(LogOffsets({"0": 5})).left == 4


def test_what_was_skipped_is_told_by_bucket_in_their_order() -> None:
    bounds = {bucket: BucketBounds(5, 9) for bucket in ("b", "a")}
    found = next_range(LogOffsets({"b": 1, "a": 2}), bounds, on_expired=OnExpired.SKIP)
    assert found.content == 'skipped:{"a":[2,5],"b":[1,5]}'


def test_ranges_that_expired_outside_of_a_round_are_none_of_its_business() -> None:
    found = _next(5, 12)
    assert found.around({"0": [(0, 5), (12, 20)], "1": [(0, 9)]}) == found.around({})
    assert found.around({"0": [(0, 5)]}).content is None
    assert found.around({"0": [(3, 6)]}).content == 'skipped:{"0":[5,6]}'
    assert found.around({"0": [(7, 11), (8, 9)]}).content == 'skipped:{"0":[7,11]}'


def test_a_bucket_that_begins_before_its_first_offset_skips_none_before_it() -> None:
    found = next_range(None, {"0": BucketBounds(3, 5, initial=-1)}).around({"0": [(-1, 2)]})
    assert found.content == 'skipped:{"0":[0,2]}'
    assert [(piece.start["0"], piece.end["0"]) for piece in found.pieces()] == [(-1, 0), (2, 5)]


def test_a_round_skips_so_many_ranges_and_ends_before_the_next() -> None:
    gone = [(at, at + 1) for at in range(0, 4 * MAX_EXPIRED_RANGES, 2)]
    found = _next(0, 1_000).around({"0": gone})
    assert found.wanted.end == LogOffsets({"0": gone[MAX_EXPIRED_RANGES][0]})
    assert len(found.skipped["0"]) == 2 * MAX_EXPIRED_RANGES
    just = _next(0, 1_000).around({"0": gone[:MAX_EXPIRED_RANGES]})
    assert just.wanted.end == LogOffsets({"0": 1_000})


@dataclass(frozen=True)
class Expiring(ChangeLog):
    """A log whose plans end, one after the other, as ``answers`` say; then as it can."""

    answers: list[Exception] = field(default_factory=list)

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        if self.answers:
            raise self.answers.pop(0)
        return super().plan(wanted)


def _expiring(*answers: Exception) -> Expiring:
    log = ChangeLog.of()
    log.append(*(("+I", key, "a") for key in range(9)))
    return Expiring(log.described, log.entries, width=100, answers=list(answers))


GONE = OffsetsExpired("offsets 2 to 3 expired", where="t", gone={"0": [(2, 4)]})


def test_a_plan_goes_around_what_expired_where_that_is_allowed() -> None:
    found, splits = plan_around(_expiring(GONE), _next(0, 9), OnExpired.SKIP)
    assert found.content == 'skipped:{"0":[2,4]}'
    assert [(split.start, split.end) for split in splits] == [(0, 2), (4, 9)]
    plain, whole = plan_around(_expiring(), _next(0, 9), OnExpired.SKIP)
    assert (plain, [(split.start, split.end) for split in whole]) == (_next(0, 9), [(0, 9)])


@pytest.mark.parametrize(
    ("error", "on_expired"),
    [(GONE, OnExpired.FAIL), (OffsetsExpired("some expired, and nobody knows which"), OnExpired.SKIP)],
)
def test_a_plan_skips_nothing_that_nobody_allowed_or_knows(error: OffsetsExpired, on_expired: OnExpired) -> None:
    with pytest.raises(OffsetsExpired) as caught:
        plan_around(_expiring(error), _next(0, 9), on_expired)
    assert caught.value is error


def test_a_bug_of_a_log_is_not_taken_for_offsets_that_expired() -> None:
    for answers in ([RuntimeError("a bug")], [GONE, RuntimeError("a bug")]):
        with pytest.raises(RuntimeError, match="a bug"):
            plan_around(_expiring(*answers), _next(0, 9), OnExpired.SKIP)


def test_what_expires_once_more_is_left_to_the_next_round() -> None:
    later = OffsetsExpired("offsets 4 to 5 expired", where="t", gone={"0": [(4, 6)]})
    with pytest.raises(StorageError) as caught:
        plan_around(_expiring(GONE, later), _next(0, 9), OnExpired.SKIP)
    assert str(caught.value) == (
        "t: offsets expired while a round ran, because offsets 4 to 5 expired. "
        "Nothing was published. The next round skips them, as on-expired is skip."
    )
    assert caught.value.__cause__ is later


@given(st.integers(0, 20), st.integers(1, 300), st.sets(st.integers(0, 320)))
def test_pieces_and_expired_ranges_are_the_whole_range(start: int, length: int, gone: set[int]) -> None:
    found = _next(start, start + length).around({"0": [(offset, offset + 1) for offset in gone]})
    end = found.wanted.end["0"]
    read = [offset for piece in found.pieces() for offset in range(piece.start["0"], piece.end["0"])]
    assert read == [offset for offset in range(start, end) if offset not in gone]
    assert len(found.skipped.get("0", ())) <= 2 * MAX_EXPIRED_RANGES
    bounds = found.skipped.get("0", ())
    skipped = {offset for first, last in zip(bounds[::2], bounds[1::2], strict=True) for offset in range(first, last)}
    assert skipped == {offset for offset in gone if start <= offset < end}
    assert found.left == start + length - end
    assert end > start
