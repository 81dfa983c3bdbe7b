"""Stamps of buckets, joined: what expired in one of them hides no other, and says nothing."""

from __future__ import annotations

import pytest

from laketier.spi import joined_stamps, stamps_differ

BOTH = joined_stamps({"0": "a", "1": "b"})
FIRST = joined_stamps({"0": "a", "1": None})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        ("a", "each:b"),
        ("each:[]", "each:{"),
        (BOTH, joined_stamps({"0": "a", "1": "c"})),
        (BOTH, joined_stamps({"1": "c"})),
        (FIRST, joined_stamps({"0": "b", "2": "c"})),
    ],
)
def test_other_stamps_of_a_bucket_are_another_history(one: str | None, other: str | None) -> None:
    assert stamps_differ(one, other)
    assert stamps_differ(other, one)
    assert not stamps_differ(one, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (None, None),
        ("a", None),
        (BOTH, None),
        (BOTH, FIRST),
        (FIRST, joined_stamps({"1": "b"})),
        (BOTH, "a stamp that a source made before it had one for each bucket"),
    ],
)
def test_what_one_of_two_stamps_lacks_says_nothing(one: str | None, other: str | None) -> None:
    assert not stamps_differ(one, other)
    assert not stamps_differ(other, one)


def test_stamps_are_joined_in_one_way() -> None:
    assert BOTH == joined_stamps({"1": "b", "0": "a"}) == 'each:{"0":"a","1":"b"}'
    assert joined_stamps({}) is None
    assert joined_stamps({"0": None}) is None
