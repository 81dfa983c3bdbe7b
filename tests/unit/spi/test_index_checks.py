"""What is checked before an index is published: its name, its options, and the parts that tasks give back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from laketier.spi import ConfigError, IndexKind, IndexMode, IndexPart, IndexPlan, IndexSpec, Refused, TableChanged
from laketier.spi.index_checks import MOST_NAME, check_built, check_index_name, check_index_options
from laketier.spi.index_plan import BuiltIndexPart, LakeIndexBuilder


class Builder(LakeIndexBuilder):
    """Of nobody."""

    def build(self, part: IndexPart) -> BuiltIndexPart:
        raise AssertionError("nothing is built")


def spec(name: Any = "text_idx", **options: Any) -> IndexSpec:
    return IndexSpec(name, "doc", IndexKind.INVERTED, options)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "text_idx", "größe", "a b", "a.b", "...", "x" * MOST_NAME])
def test_names_of_indexes(name: str) -> None:
    check_index_name(spec(name), where="db.t")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (None, "it is a NoneType"),
        (7, "it is a int"),
        ("", "it is empty"),
        (" \t", "it is empty"),
        ("x" * (MOST_NAME + 1), "it has 201 characters, and 200 are allowed"),
        (" a", "begins or ends with a space"),
        ("a ", "begins or ends with a space"),
        ("a\nb", "that can't be seen"),
        ("a\u200bb", "that can't be seen"),
        (".", "it reads as a path"),
        ("..", "it reads as a path"),
        ("a/b", "it reads as a path"),
        ("a\\b", "it reads as a path"),
    ],
)
def test_names_that_no_index_has(name: Any, why: str) -> None:
    with pytest.raises(ConfigError, match="is no name of an index") as told:
        check_index_name(spec(name), where="db.t")
    assert told.value.where == "db.t"
    assert why in str(told.value.why)
    assert told.value.fix


# -- options -----------------------------------------------------------------------------------------------------------

KNOWN: dict[str, type] = {"stem": bool, "bits": int, "language": str}


def test_options_of_an_index() -> None:
    check_index_options(spec(), {})
    check_index_options(spec(stem=True, bits=8, language="de"), KNOWN)
    check_index_options(spec(stem=None, bits=None), KNOWN)


@pytest.mark.parametrize(
    ("options", "known", "told"),
    [
        ({"bit": 8}, KNOWN, "inverted has no option 'bit', because it has bits, language, stem. Did you mean 'bits'?"),
        ({"zzz": 8}, KNOWN, "inverted has no option 'zzz', because it has bits, language, stem. Remove it."),
        ({"zzz": 8}, {}, "inverted has no option 'zzz', because it has none. Remove it."),
        ({"bits": True}, KNOWN, "bits = True is not of type int"),
        ({"bits": "8"}, KNOWN, "bits = '8' is not of type int"),
        ({"stem": 1}, KNOWN, "stem = 1 is not of type bool"),
        ({"stem": True, "bits": 8.0}, KNOWN, "bits = 8.0 is not of type int"),
    ],
)
def test_options_that_an_index_has_not(options: dict[str, Any], known: dict[str, type], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_index_options(spec(**options), known)
    assert str(error.value).startswith(f"index text_idx: {told}")


# -- parts -------------------------------------------------------------------------------------------------------------

PARTS = tuple(IndexPart(number, (str(number),), 10 + number) for number in range(3))
PLAN = IndexPlan("plan", spec(), IndexMode.CREATE, 7, PARTS, Builder())


def built(number: int, segment: str | None = None, **more: Any) -> BuiltIndexPart:
    part = PARTS[number]
    made = BuiltIndexPart("plan", part, segment or f"s{number}", 7, "settings", part.rows, 100, "{}")
    return replace(made, **more)


ALL = [built(number) for number in range(3)]


def test_the_parts_of_a_plan() -> None:
    check_built(PLAN, ALL, where="db.t")
    check_built(PLAN, ALL[::-1], where="db.t")
    check_built(replace(PLAN, parts=()), [], where="db.t")
    check_built(replace(PLAN, parts=PARTS[1:], kept=(ALL[0],)), ALL[1:], where="db.t")


@pytest.mark.parametrize(
    ("plan", "parts", "error", "told"),
    [
        (PLAN, [*ALL[:2], built(2, plan_id="other")], Refused, "part 2 is not of this plan"),
        (replace(PLAN, parts=PARTS[:2]), ALL, Refused, "part 2 is not of this plan"),
        (PLAN, [*ALL[:2], built(2, part=replace(PARTS[2], units=("x",)))], Refused, "part 2 is not of this plan"),
        (PLAN, [*ALL[:2], built(2, snapshot_id=8)], TableChanged, "part 2 was built at snapshot 8, and the plan is of"),
        (PLAN, [*ALL[:2], built(2, rows=13)], Refused, "part 2 has 13 rows, not 12"),
        (PLAN, [*ALL[:2], built(2, rows=11)], Refused, "part 2 has 11 rows, not 12"),
        (PLAN, [*ALL, built(1, "another")], Refused, r"parts \[1\] were built twice"),
        (PLAN, [*ALL[:2], built(2, "s0")], Refused, r"parts \[0, 2\] were built twice"),
        (PLAN, ALL[1:], Refused, r"parts \[0\] of 3 are missing"),
        (PLAN, ALL[1:2], Refused, r"parts \[0, 2\] of 3 are missing"),
        (PLAN, [], Refused, r"parts \[0, 1, 2\] of 3 are missing"),
        (PLAN, [*ALL[:2], built(2, settings="others")], Refused, "built with different settings"),
        (replace(PLAN, parts=PARTS[1:], kept=(built(0, settings="older"),)), ALL[1:], Refused, "different settings"),
    ],
)
def test_parts_that_are_not_those_of_the_plan(
    plan: IndexPlan, parts: list[BuiltIndexPart], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told) as caught:
        check_built(plan, parts, where="db.t")
    assert "nothing was published" in str(caught.value)
    assert getattr(caught.value, "where", None) == "db.t"


@pytest.mark.parametrize(("peak", "base", "taken"), [(0, 0, 0), (9, 0, 0), (9, 4, 5), (4, 9, 0)])
def test_the_memory_of_a_part(peak: int, base: int, taken: int) -> None:
    assert built(0, peak_memory=peak, base_memory=base).memory_taken == taken
