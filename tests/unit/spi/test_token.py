from __future__ import annotations

import json
from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.spi import ConfigError, CorruptTable, SourceRange, Token, Watermark

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
tokens = st.builds(
    Token,
    text,
    text,
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.none() | text,
    st.none() | st.builds(SourceRange, text, text, st.none() | text),
)
watermarks = st.builds(
    Watermark,
    tokens,
    text,
    st.integers(0),
    st.integers(0),
    st.none() | st.integers(0, 2**63 - 1),
    st.booleans(),
)
MARK = Watermark(Token("p", "r", 3, 1, "c", SourceRange("0", "5")), "id", 7, 8, 9)


@given(watermarks)
def test_round_trip(watermark: Watermark) -> None:
    stored = watermark.to_json()
    assert Watermark.from_json(stored) == watermark
    assert Watermark.from_json(stored.encode()) == watermark
    assert Watermark.from_json(stored).to_json() == stored, "canonical"


def test_the_stored_form_is_stable() -> None:
    """Other versions of laketier read it: changing it needs a new version number."""
    assert MARK.to_json() == (
        '{"at":8,"commit":"id","content":"c","epoch":3,"fence":1,"forgotten":false,"pipeline":"p","rows":7,"run":"r",'
        '"snapshot":9,"source":["0","5"],"v":1}'
    )


def test_a_stamp_is_stored_behind_the_range() -> None:
    """Where a laketier from before passes over it, and what comes behind it is a later one's."""
    stamped = replace(MARK, token=replace(MARK.token, source=SourceRange("0", "5", "é")))
    assert '"source":["0","5","é"]' in stamped.to_json()
    assert Watermark.from_json(stamped.to_json().replace('"é"]', '"é",7]')) == stamped
    with pytest.raises(CorruptTable, match="can't be read"):
        Watermark.from_json(stamped.to_json().replace('"é"', "7"))


@pytest.mark.parametrize("key", sorted(json.loads(MARK.to_json())))
@pytest.mark.parametrize("value", ["missing", [], 1.5])
def test_any_damaged_field_is_corrupt(key: str, value: object) -> None:
    document = json.loads(MARK.to_json())
    if value == "missing":
        del document[key]
    else:
        document[key] = value
    with pytest.raises(CorruptTable):
        Watermark.from_json(json.dumps(document))


@pytest.mark.parametrize("garbage", ["", "{}", "null", "[1]", "nonsense", '"text"', "[" * 100_000])
def test_garbage_is_corrupt(garbage: str) -> None:
    with pytest.raises(CorruptTable, match="can't be read"):
        Watermark.from_json(garbage)


def test_a_newer_version_says_so() -> None:
    with pytest.raises(CorruptTable, match="version 2") as caught:
        Watermark.from_json(MARK.to_json().replace('"v":1', '"v":2'))
    assert caught.value.fix == "Use a newer laketier."


@pytest.mark.parametrize(
    "fields",
    [
        ("", "r", 0),
        ("p", "", 0),
        (7, "r", 0),
        ("p", b"r", 0),
        ("p\ud800", "r", 0),
        ("p", "r", -1),
        ("p", "r", 0, -1),
        ("p", "r", 1.0),
        ("p", "r", True),
        ("p", "r", "1"),
        ("p", "r", numpy.int64(1)),
        ("p", "r", 2**63),
        ("p", "r", 0, 1.0),
        ("p", "r", 0, 0, 5),
        ("p", "r", 0, 0, "\ud800"),
    ],
    ids=ascii,
)
def test_impossible_tokens(fields: tuple[object, ...]) -> None:
    """What is stored and can't be read again would stop its pipeline for good."""
    with pytest.raises(ConfigError, match=r"^(a round needs a pipeline and a run|the \w+ of a round is)"):
        Token(*fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("right", "wrong"), [('"epoch":7', '"epoch":-7'), ('"pipeline":"p"', '"pipeline":""'), ('"p"', '"\\ud800"')]
)
def test_an_impossible_token_that_is_stored_is_corrupt(right: str, wrong: str) -> None:
    text = Watermark(Token("p", "r", 7), "c").to_json()
    assert right in text
    with pytest.raises(CorruptTable, match="can't be read"):
        Watermark.from_json(text.replace(right, wrong))


def test_the_carrier_is_named_afterwards() -> None:
    assert MARK.carried_by(11).snapshot_id == 11
    assert MARK.carried_by(11).token == MARK.token
