"""The list of guards is true to the sources. Taking them away is `make test-guards`."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sys
from itertools import pairwise

import pytest

from depth import BY_TURNS, FORMATS
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


def test_what_guards_a_format_is_met_by_this_format_on_each_day() -> None:
    """Of what several formats meet `make test` leaves half to the deep tests, whatever the guard is in."""
    of_formats = [(guard, guard.file.split("/")[1]) for guard in guards() if guard.file.startswith("plugins/")]
    asked = [(guard, whose) for guard, whose in of_formats if guard.tests.startswith(BY_TURNS)]
    assert {whose for _, whose in asked} == {*FORMATS} - {"localfile"}
    files = {word for guard, _ in asked for word in shlex.split(guard.tests) if "/" in word}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not deep", "-p", "no:cacheprovider"]
    told = subprocess.run([*command, *sorted(files)], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    left = [line for line in told.splitlines() if "::" in line]
    for guard, whose in asked:
        words = shlex.split(guard.tests)
        chosen = [word for option, word in pairwise(words) if option == "-k"]
        mine = [name for name in left if name.startswith(words[0]) and all(word in name for word in chosen)]
        others = [name for name in FORMATS if name != whose]
        met = [name for name in mine if not any(other in name.partition("[")[2] for other in others)]
        assert met, f"{guard.name}: none of its tests meets {whose} in make test: mark one `each_format`"
