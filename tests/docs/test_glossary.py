"""The words that the glossary bans do not come back as names, and no class of the core has the name of another."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "core",
    "conformance",
    "verification",
    "examples",
    "benchmarks",
    "scripts",
    *map(str, ROOT.glob("plugins/*/laketier_*")),
)
_ROW = re.compile(r"\| `(?P<word>[^`]+)` \| (?P<instead>.+) \|")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def banned() -> list[str]:
    """The first column of the table."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## Words that we do not use\n")
    return [row["word"] for row in _ROW.finditer(section)]


def sources() -> Iterator[Path]:
    """The modules that are ours, without tests. Old migrations of the state database never change."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if "migrations" not in path.parts:
                yield path


def names(path: Path) -> Iterator[tuple[str, str]]:
    """The kind and the name of all that a module defines, itself too."""
    yield "module", path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield "function", name
            case ast.ClassDef(name=name):
                yield "class", name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield "name", name


@cache
def words(name: str) -> list[str]:
    """The words of a name, in lower case and in the singular."""
    return [part.lower().removesuffix("s") for part in _PARTS.findall(name)]


def uses(kind: str, name: str, word: str) -> bool:
    """Whether a name uses a banned word."""
    if word.endswith("()"):
        return kind == "function" and name == word.removesuffix("()")
    if word[0].isupper():
        return kind == "class" and name == word
    run, parts = words(word), words(name)
    at = [i for i in range(len(parts)) if parts[i : i + len(run)] == run]
    return any(word != "letter" or parts[i - 1 : i] != ["dead"] for i in at)


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        ("name", "scan_letters", "letter"),
        ("class", "LetterState", "letter"),
        ("module", "tiering_catalogue", "catalogue"),
        ("class", "Outcome", "Outcome"),
        ("function", "union", "union()"),
        ("name", "_held", "held"),
        ("function", "goes_on_as", "goes on as"),
        ("class", "IdleTables", "idle table"),
    ],
)
def test_a_banned_word_is_found(kind: str, name: str, word: str) -> None:
    assert word in banned()
    assert uses(kind, name, word)


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        ("class", "DeadLetters", "letter"),
        ("class", "RoundOutcome", "Outcome"),
        ("name", "union", "union()"),
        ("function", "plan_union", "union()"),
        ("name", "threshold", "hole"),
        ("name", "slots", "lot"),
        ("name", "until_idle", "idle table"),
    ],
)
def test_other_words_pass(kind: str, name: str, word: str) -> None:
    assert not uses(kind, name, word)


def test_no_name_has_a_banned_word() -> None:
    bans = banned()
    assert len(bans) > 10
    found = [
        f"{path.relative_to(ROOT)}: {kind} {name} (glossary: {word})"
        for path in sources()
        for kind, name in set(names(path))
        for word in bans
        if uses(kind, name, word)
    ]
    assert not sorted(found)


def test_no_two_classes_of_the_core_have_one_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
