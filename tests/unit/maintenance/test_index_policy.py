"""When an index is appended to, merged or built anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from laketier.maintenance.index_policy import IndexPolicy, IndexStep, built_age, decide_index
from laketier.spi import IndexInfo, IndexKind, IndexSpec

SPEC = IndexSpec("x", "text", IndexKind.INVERTED)
POLICY = IndexPolicy(SPEC, max_unindexed_rows=100, max_unindexed_seconds=60.0, max_segments=4, max_deleted_share=0.5)
NOW = 10_000_000


def info(
    *, rows: int = 1000, tail: int = 0, segments: int = 1, deleted: int = 0, built_at: int | None = NOW
) -> IndexInfo:
    return IndexInfo(
        name="x",
        column="text",
        kind="inverted",
        options={},
        segments=tuple(str(each) for each in range(segments)),
        rows_indexed=rows,
        rows_not_indexed=tail,
        snapshot_id=1,
        rows_deleted=deleted,
        built_at=built_at,
    )


@pytest.mark.parametrize(
    ("found", "rows", "step"),
    [
        (None, 0, IndexStep.NOTHING),
        (None, 1, IndexStep.CREATE),
        (info(), 0, IndexStep.NOTHING),
        (info(tail=99), 0, IndexStep.NOTHING),
        (info(tail=100), 0, IndexStep.APPEND),
        (info(tail=1, built_at=NOW - 59_999), 0, IndexStep.NOTHING),
        (info(tail=1, built_at=NOW - 60_000), 0, IndexStep.APPEND),
        (info(tail=1, built_at=None), 0, IndexStep.APPEND),
        (info(tail=1, built_at=NOW + 59_999), 0, IndexStep.NOTHING),
        (info(tail=1, built_at=NOW + 365 * 86_400_000), 0, IndexStep.APPEND),
        (info(built_at=0), 0, IndexStep.NOTHING),
        (info(segments=4), 0, IndexStep.NOTHING),
        (info(segments=5), 0, IndexStep.MERGE),
        (info(segments=5, tail=100), 0, IndexStep.APPEND),
        (info(deleted=1000), 0, IndexStep.NOTHING),
        (info(deleted=1001, segments=9, tail=100), 0, IndexStep.REBUILD),
        (info(rows=0, deleted=7), 0, IndexStep.NOTHING),
    ],
)
def test_what_is_done_next(found: IndexInfo | None, rows: int, step: IndexStep) -> None:
    assert decide_index(found, rows, POLICY, NOW).step is step


def test_a_limit_that_is_not_set_decides_nothing() -> None:
    without = replace(POLICY, max_unindexed_rows=None, max_unindexed_seconds=None)
    assert decide_index(info(tail=10**9, built_at=None), 0, without, NOW).step is IndexStep.NOTHING


POLICIES = st.builds(
    IndexPolicy,
    st.just(SPEC),
    st.none() | st.integers(1, 10**6),
    st.none() | st.floats(0, 10**6),
    st.integers(1, 20),
    st.floats(0.01, 1),
)


def test_a_part_that_is_dated_ahead_has_no_age() -> None:
    """Neither for the upkeep nor in the service's metrics: an age of 0 would hide that nobody knows it."""
    ages = [built_age(at, NOW) for at in (None, NOW - 1500, NOW + 60_000, NOW + 60_001)]
    assert ages == [None, 1.5, 0, None]


INFOS = st.builds(
    info,
    rows=st.integers(0, 10**6),
    tail=st.integers(0, 10**6),
    segments=st.integers(1, 100),
    deleted=st.integers(0, 10**6),
    built_at=st.none() | st.integers(0, NOW) | st.integers(NOW, 2 * NOW),
)


@given(INFOS, POLICIES)
def test_steps_end_and_leave_no_more_than_the_policy_allows(found: IndexInfo, policy: IndexPolicy) -> None:
    """What each step does to the figures, played through."""
    taken = []
    for _ in range(4):
        step = decide_index(found, 0, policy, NOW).step
        if step is IndexStep.NOTHING:
            break
        taken.append(step)
        if step is IndexStep.APPEND:
            rows = found.rows_indexed + found.rows_not_indexed
            found = replace(
                found, rows_indexed=rows, rows_not_indexed=0, segments=(*found.segments, "new"), built_at=NOW
            )
        elif step is IndexStep.MERGE:
            found = replace(found, segments=found.segments[: (policy.max_segments + 1) // 2], built_at=NOW)
        else:
            rows = found.rows_indexed + found.rows_not_indexed
            found = replace(
                found, rows_indexed=rows, rows_not_indexed=0, rows_deleted=0, segments=("new",), built_at=NOW
            )
    assert decide_index(found, 0, policy, NOW).step is IndexStep.NOTHING
    assert len(taken) == len(set(taken)) <= 2
    assert len(found.segments) <= policy.max_segments
    assert policy.max_unindexed_rows is None or found.rows_not_indexed < policy.max_unindexed_rows


@given(INFOS, POLICIES, st.integers(0, 10**9))
def test_waiting_never_takes_an_append_back(found: IndexInfo, policy: IndexPolicy, waited: int) -> None:
    """But where the newest part is dated ahead: its age is known once that time has come."""
    assume(found.built_at is None or found.built_at <= NOW)
    now = decide_index(found, 0, policy, NOW).step
    later = decide_index(found, 0, policy, NOW + waited).step
    assert later is now or (now in (IndexStep.NOTHING, IndexStep.MERGE) and later is IndexStep.APPEND)
