"""What a page names is there: tests, files, options of the suite, targets of `make`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "conformance" / "laketier_conformance"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
    *sorted(ROOT.glob("tests/**/README.md")),
]
_CODE = re.compile(r"`([^`\n]+)`")
_TEST = re.compile(r"\b(?P<name>test_\w+)(?P<suffix>\.py)?(?:::(?P<test>\w+))?(?P<cut>…)?")
_PLACE = re.compile(
    r"(?<![\w./<-])(?:benchmarks|conformance|core|docs|examples|plugins|scripts|tests|verification)/[\w./*-]+"
)
_OPTION = re.compile(r"(?<![\w-])--lake-[a-z][a-z0-9-]*")
_TARGET = re.compile(r"(?:^|\s)make ((?:[a-z][a-z-]*(?:\s+|$))+)")


@cache
def _tests() -> dict[str, set[str]]:
    """The tests of each file."""
    found: dict[str, set[str]] = {}
    for pattern in ("conformance/", "plugins/*/tests/", "tests/"):
        for file in ROOT.glob(f"{pattern}**/test_*.py"):
            names = re.findall(r"^\s*(?:async )?def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE)
            found.setdefault(file.stem, set()).update(names)
    return found


@cache
def _options() -> set[str]:
    return set(re.findall(r'"(--lake-[\w-]+)"', (SUITE / "plugin.py").read_text(encoding="utf-8")))


@cache
def _targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def _named(code: str) -> Iterator[tuple[str, bool]]:
    """What a piece of code names, and whether it is there."""
    tests = _tests()
    for match in _TEST.finditer(code):
        name, test = match["name"], match["test"]
        among = tests.get(name, set()) if test else set().union(*tests.values())
        wanted = test or name
        there = any(each.startswith(wanted) for each in among) if match["cut"] else wanted in among
        yield match[0], there or (not test and name in tests)
    for match in _PLACE.finditer(code):
        place = match[0].rstrip("./")
        yield place, any(ROOT.glob(place))
    for match in _OPTION.finditer(code):
        yield match[0], match[0] in _options()
    for match in _TARGET.finditer(code):
        for target in match[1].split():
            yield f"make {target}", target in _targets()


def test_what_pages_name_is_there() -> None:
    named = [
        (page, *each)
        for page in PAGES
        for code in _CODE.findall(page.read_text(encoding="utf-8"))
        for each in _named(code)
    ]
    assert len(named) > 1000
    assert not [f"{page.relative_to(ROOT)} names {name}" for page, name, there in named if not there]


@pytest.mark.parametrize(
    "code",
    [
        "test_nowhere",
        "test_nowhere.py",
        "test_rounds.py::test_nowhere",
        "test_rounds.py::test_now…",
        "pytest tests/unit/nowhere.py",
        "plugins/nowhere/**/*.py",
        "--lake-nowhere=1",
        "make nowhere",
        "make test nowhere ARGS=x",
    ],
)
def test_what_is_not_there_is_found(code: str) -> None:
    assert [there for _, there in _named(code)].count(False) == 1
