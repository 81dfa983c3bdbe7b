"""A guard counts as noticed by a test that fails without it, and by no test that fails with it, too."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from laketier_verification.guards.listed import Guard
from laketier_verification.guards.record import Taken, digest_of, file_of, is_left, keep, recorded
from laketier_verification.guards.taking import NothingShown, SourcesCopy

GUARD = Guard("no row twice", "core/rows.py", remove="if row in seen:", put="if False:", tests="tests/test_rows.py")
SOURCE = """
def once(rows):
    seen = []
    for row in rows:
        if row in seen:
            continue
        seen.append(row)
    return seen
"""
TEST = """
import pytest
from rows import once

@pytest.mark.parametrize("rows", [[1], [2, 2]], ids=["one row", "a row twice | and more"])
def test_once(rows):
    assert once(rows) == {expected}
"""


@pytest.fixture
def copy(tmp_path: Path) -> SourcesCopy:
    for name, text in ((GUARD.file, SOURCE), (GUARD.tests, ""), ("pytest.ini", "[pytest]\n")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return SourcesCopy(tmp_path)


def write_test(copy: SourcesCopy, expected: str) -> None:
    (copy.folder / GUARD.tests).write_text(TEST.replace("{expected}", expected))


def test_a_guard_is_noticed_by_its_test(copy: SourcesCopy) -> None:
    write_test(copy, "[rows[0]]")
    assert copy.without(GUARD).noticed_by == "tests/test_rows.py::test_once[a row twice | and more]"
    assert (copy.folder / GUARD.file).read_text() == SOURCE


def test_a_guard_that_nobody_notices(copy: SourcesCopy) -> None:
    write_test(copy, "rows or once(rows)")
    (copy.folder / GUARD.file).write_text(SOURCE.replace("return seen", "return rows"))
    assert copy.without(GUARD).noticed_by == ""


def test_a_test_that_fails_anyhow_shows_nothing(copy: SourcesCopy) -> None:
    write_test(copy, "'something else'")
    with pytest.raises(NothingShown, match="fails although the guard is there: no row twice"):
        copy.without(GUARD)


@pytest.mark.parametrize(
    "wrong",
    [
        {"put": "if row in:"},
        {"tests": "tests/gone.py"},
        {"tests": "--gone"},
    ],
    ids=["does not compile", "no such test", "no such option"],
)
def test_a_run_in_which_no_test_failed_shows_nothing(copy: SourcesCopy, wrong: dict[str, str]) -> None:
    write_test(copy, "[rows[0]]")
    with pytest.raises(NothingShown, match="and no test failed"):
        copy.without(dataclasses.replace(GUARD, **wrong))
    assert (copy.folder / GUARD.file).read_text() == SOURCE


def taken(guard: Guard, test: str = "tests/test_rows.py::test_once[a | b]") -> Taken:
    return Taken(guard.name, guard.file, test, "0123456789abcdef-dirty", "2026-11-26", digest_of(guard))


def test_a_run_goes_on_where_another_ended(tmp_path: Path) -> None:
    page = tmp_path / "guards.md"
    other = dataclasses.replace(GUARD, name="no row lost")
    assert recorded(file_of(page)) == {}
    keep(page, [GUARD, other], {}, [taken(GUARD)])
    record = recorded(file_of(page))
    assert [is_left(guard, record) for guard in (GUARD, other)] == [False, True]
    assert "- no row lost" in page.read_text()
    keep(page, [GUARD, other], record, [taken(other)])
    assert list(recorded(file_of(page))) == [GUARD.name, other.name]
    assert "of 2 guards 2 were taken away, and 2 were noticed" in page.read_text()
    assert "| `test_rows.py::test_once[a - b]` | 2026-11-26, 01234567-dirty |" in page.read_text()


def test_what_changed_in_the_list_is_left(tmp_path: Path) -> None:
    record = keep(tmp_path / "guards.md", [GUARD], {}, [taken(GUARD)])
    assert not is_left(GUARD, record)
    assert is_left(dataclasses.replace(GUARD, put="if 1 > 2:"), record)
    assert is_left(GUARD, {GUARD.name: taken(GUARD, test="")})
    assert keep(tmp_path / "guards.md", [], record, []) == {}
