"""The values of options: those that are never shown, and how fields are declared."""

from __future__ import annotations

import dataclasses

import pytest

from laketier.spi import Passthrough, Secret, option


def test_a_field_has_its_default_and_says_what_it_is() -> None:
    @dataclasses.dataclass(frozen=True)
    class Options:
        count: int = option(3, "How many.", least=1)
        more: Passthrough = option(Passthrough(), "For a library.")

    count, more = dataclasses.fields(Options)
    assert (Options().count, dict(Options().more)) == (3, {})
    assert dict(count.metadata) == {"doc": "How many.", "least": 1, "most": None}
    assert more.metadata["doc"] == "For a library."
    assert Options().more is not Options().more, "no two share one"


def test_secrets_are_equal_by_their_values_and_never_shown() -> None:
    assert Secret("a") == Secret("a")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert f"{Secret('a')} {Secret('a')!r}" == "*** ***"
    assert Secret("a").reveal() == "a"


def test_keys_for_a_library_are_a_copy_and_show_no_values() -> None:
    given = {"b": "hunter2", "a": "x"}
    found = Passthrough(given)
    given["b"] = "other"
    assert dict(found) == {"b": "hunter2", "a": "x"}
    assert repr(found) == "{a: ***, b: ***}"
    assert (len(Passthrough()), len(Passthrough(None))) == (0, 0)
    with pytest.raises(KeyError):
        found["c"]
