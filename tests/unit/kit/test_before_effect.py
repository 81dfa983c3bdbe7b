"""A step before the effect of a commit that fails is told as such, and what says more passes."""

from __future__ import annotations

import pytest

from laketier.kit import before_effect
from laketier.spi import Conflict, CorruptTable, NotBegun, Refused, StagedFileLost, UnknownOutcome

WHAT, FIX = "a step before the commit failed; nothing was published", "Remove the cause and run it again."


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("disk gone"), f"db.t: {WHAT}, because OSError: disk gone. {FIX}"),
        (CorruptTable("it is damaged"), f"db.t: {WHAT}, because it is damaged. {FIX}"),
        (
            CorruptTable("it is damaged", where="f", why="a byte is odd", fix="Restore it."),
            f"f: {WHAT}, because it is damaged, because a byte is odd. Restore it.",
        ),
    ],
)
def test_an_error_before_the_effect_is_told_with_its_cause(error: Exception, told: str) -> None:
    with pytest.raises(NotBegun) as caught, before_effect("db.t"):
        raise error
    assert str(caught.value) == told
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("kind", [Conflict, Refused, StagedFileLost, UnknownOutcome, NotBegun])
def test_what_says_more_passes(kind: type[Exception]) -> None:
    error = kind("no")
    with pytest.raises(kind) as caught, before_effect("db.t"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit()])
def test_who_is_stopped_is_stopped(stop: BaseException) -> None:
    with pytest.raises(type(stop)), before_effect("db.t"):
        raise stop
