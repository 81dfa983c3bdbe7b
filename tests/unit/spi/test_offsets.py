"""Positions in logs: their text is what tokens hold, so it must be the same for the same position, for ever."""

from __future__ import annotations

import pytest

from laketier.spi import BucketBounds, CorruptTable, LogOffsets, LogRange, LogSplit

DEEP = pytest.param("[" * 200_000, id="deep")


def test_a_position_has_one_text() -> None:
    text = '{"a":1,"z":2,"ö":3}'
    for order in ("azö", "öza", "zöa"):
        offsets = LogOffsets({bucket: "azö".index(bucket) + 1 for bucket in order})
        assert (offsets.to_text(), list(offsets)) == (text, ["a", "z", "ö"])
        assert LogOffsets.from_text(text) == offsets
        assert hash(offsets) == hash(LogOffsets.from_text(text))
        assert repr(offsets) == "LogOffsets({'a': 1, 'z': 2, 'ö': 3})"
    assert (LogOffsets().to_text(), len(LogOffsets(None))) == ("{}", 0)
    assert type(LogOffsets.from_text("{}")) is LogOffsets


def test_a_position_is_no_view_of_what_it_was_made_from() -> None:
    given = {"a": 1}
    offsets = LogOffsets(given)
    given["a"] = 2
    assert offsets["a"] == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"a":"1"}', '{"a":1.0}', '{"a":true}', '{"a":null}', "[1]", DEEP]
)
def test_text_that_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(CorruptTable, match="the offsets of a log can't be read"):
        LogOffsets.from_text(text)


@pytest.mark.parametrize(
    ("start", "end", "offsets"),
    [
        ({}, {}, 0),
        ({"a": 3}, {"a": 3}, 0),
        ({}, {"a": 0}, 0),
        ({}, {"a": 1}, 1),
        ({"a": 2, "b": 5}, {"a": 4, "b": 6}, 3),
        ({"a": 9, "b": 5}, {"a": 4, "b": 6}, 1),
        ({"a": 9}, {"a": 4}, 0),
    ],
)
def test_a_range_holds_the_offsets_between_its_positions(
    start: dict[str, int], end: dict[str, int], offsets: int
) -> None:
    found = LogRange(LogOffsets(start), LogOffsets(end))
    assert (found.offsets, found.is_empty) == (offsets, offsets == 0)


def test_bounds_say_nothing_that_nobody_knows() -> None:
    bounds = BucketBounds(1, 2)
    assert (bounds.latest_at, bounds.initial) == (None, None)


def test_a_split_is_cut_at_each_offset_and_keeps_the_rest() -> None:
    split = LogSplit(bucket="0", start=5, end=12, bytes=70, payload="x")
    parts = list(split.cut(3))
    assert [(part.start, part.end) for part in parts] == [(5, 7), (7, 9), (9, 12)]
    assert {(part.bucket, part.bytes, part.payload) for part in parts} == {("0", None, "x")}
