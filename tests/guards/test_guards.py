"""The list of guards is true to the sources. Taking them away is `make test-guards`."""

from __future__ import annotations

import ast
import shlex

import pytest

from laketier_verification.guards.listed import ROOT, Guard, guards


@pytest.mark.parametrize("guard", guards(), ids=lambda guard: guard.name)
def test_a_guard_is_where_the_list_says(guard: Guard) -> None:
    assert guard.line() > 0
    text = (ROOT / guard.file).read_text(encoding="utf-8")
    assert guard.without(text) != text
    ast.parse(guard.without(text))  # without it the module must still be Python, or any test would notice


@pytest.mark.parametrize("guard", guards(), ids=lambda guard: guard.name)
def test_its_tests_are_there(guard: Guard) -> None:
    for word in shlex.split(guard.tests):
        if "/" in word:
            assert (ROOT / word).exists(), f"{guard.name} names {word}"


def test_names_are_unique() -> None:
    names = [guard.name for guard in guards()]
    assert len(names) == len(set(names))
