"""The list that a run of the tests ends with."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from times import BEGUN, BUDGET_MINUTES, SHOWN, tell
from workspace import ROOT


class Printed:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(title)

    def line(self, text: str, **_: Any) -> None:
        self.lines.append(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path, "tests", {f"t{number}": number for number in range(30)})
    written(tmp_path, "conformance", {"long": 99.5})
    return tmp_path


def written(folder: Path, piece: str, tests: dict[str, float]) -> None:
    cases = "".join(f'<testcase classname="m" name="{name}" time="{time}"/>' for name, time in tests.items())
    (folder / f"{piece}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")


def told(folder: Path) -> list[str]:
    printed = Printed()
    tell(folder, printed)
    return printed.lines


def test_the_slowest_of_all_pieces_come_first(folder: Path) -> None:
    title, first, second, *rest = told(folder)
    assert title == "slowest 20 of conformance, tests"
    assert (first.split(), second.split()) == (
        ["99.5", "s", "conformance:", "m::long"],
        ["29.0", "s", "tests:", "m::t29"],
    )
    assert len(rest) == SHOWN - 2, "of a piece by itself there is no total"


@pytest.mark.parametrize(("minutes", "warned"), [(BUDGET_MINUTES - 1, False), (BUDGET_MINUTES + 1, True)])
def test_a_passed_budget_is_said(folder: Path, minutes: int, warned: bool) -> None:
    begun = folder / BEGUN
    begun.touch()
    os.utime(begun, (time.time() - minutes * 60,) * 2)
    last = told(folder)[-1]
    assert last.startswith("WARNING: ") == warned
    assert f"make test took {minutes}.0 minutes so far; the budget is {BUDGET_MINUTES}" in last


def test_a_piece_of_an_earlier_run_is_left_out(folder: Path) -> None:
    os.utime(folder / "conformance.xml", (1, 1))
    (folder / BEGUN).touch()
    os.utime(folder / BEGUN, (2, 2))
    assert told(folder)[0] == "slowest 20 of tests"


def test_the_budget_is_written_down() -> None:
    assert f"{BUDGET_MINUTES} minutes" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
