"""The pure rules of the schedule."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import before_effect
from laketier.service.schedule import (
    TRANSITIONS,
    Backoff,
    IllegalTransition,
    State,
    due_at,
    is_fresh,
    is_retryable,
    move,
    round_deadline,
)
from laketier.spi.errors import (
    ConfigError,
    CorruptTable,
    Fenced,
    NotBegun,
    OffsetsExpired,
    Stale,
    StorageError,
    TokenMismatch,
    UnknownOutcome,
    UnsafeTable,
)


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_only_the_table_of_transitions_allows(before: State, after: State) -> None:
    if after in TRANSITIONS[before]:
        assert move("s.t", before, after) is after
    else:
        with pytest.raises(IllegalTransition, match=rf"s\.t: a table in state {before} can't become {after}"):
            move("s.t", before, after)


def test_a_path_is_checked_step_by_step() -> None:
    assert move("t", State.NEW, State.SCHEDULED, State.PENDING, State.TIERING) is State.TIERING
    with pytest.raises(IllegalTransition):
        move("t", State.NEW, State.PENDING, State.TIERING)


def test_a_lease_begins_in_the_queue_only() -> None:
    assert [state for state in State if State.TIERING in TRANSITIONS[state]] == [State.PENDING]


def test_every_state_can_be_left() -> None:
    assert all(TRANSITIONS[state] for state in State)


def test_due_and_deadline() -> None:
    assert due_at(1_000, 60) == 61_000
    assert due_at(1_000, 60, 2_000) == 58_000, "a round that takes as long, and half as long again, ends in time"
    assert due_at(1_000, 60, 500_000) == 31_000, "a slow one does not make the table due at once"
    assert round_deadline(1_000, 60) == 61_000
    assert is_fresh(61_000, 1_000, 60)
    assert not is_fresh(61_001, 1_000, 60)
    assert not is_fresh(0, None, 60)


@given(st.integers(1, 10_000), st.integers(0, 100), st.floats(0, 1))
def test_a_wait_is_doubled_capped_and_jittered(failures: int, seed: int, jitter: float) -> None:
    wait = Backoff(5, 600, jitter).wait_ms(failures, random.Random(seed))
    longest = min(5 * 2 ** min(failures - 1, 20), 600) * 1000
    assert max(1, round(longest * (1 - jitter))) <= wait <= longest


def test_the_same_seed_waits_the_same_and_another_one_does_not() -> None:
    def waits(seed: int) -> list[int]:
        draw = random.Random(seed)
        return [Backoff().wait_ms(failures, draw) for failures in range(1, 9)]

    assert waits(1) == waits(1) != waits(2)


@pytest.mark.parametrize("error", [StorageError("x"), UnknownOutcome("x"), Fenced("x"), Stale("x"), OSError("x")])
def test_what_may_go_away_is_tried_again(error: Exception) -> None:
    assert is_retryable(error)


@pytest.mark.parametrize("error", [TokenMismatch("x"), OffsetsExpired("x"), ConfigError("x")])
def test_what_a_person_must_mend_is_not(error: Exception) -> None:
    assert not is_retryable(error)


@pytest.mark.parametrize(
    ("cause", "may_help"),
    [(StorageError("x"), True), (OSError("x"), True), (CorruptTable("x"), False), (UnsafeTable("x"), False)],
)
def test_a_commit_that_did_not_begin_waits_for_whom_its_cause_needs(cause: Exception, may_help: bool) -> None:
    """A manifest that is damaged is so in each round, and each would stage all of its rows again."""
    with pytest.raises(NotBegun) as caught, before_effect("db.t"):
        raise cause
    assert is_retryable(caught.value) is may_help
