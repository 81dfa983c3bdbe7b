"""An edit of a syntax tree, which can be taken back, and the text by which people know it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

_LONGEST, _AROUND = 120, 40

Slot = tuple[ast.AST, str, Any]
"""A node, an attribute, and its new value."""


@dataclass(frozen=True)
class Edit:
    """One mistake: ``slots`` are set. ``statements``: those that it changes, for its text; empty: the edit tells its
    own ``texts``. ``line``: who does not come there can't notice."""

    operator: str
    line: int
    slots: tuple[Slot, ...]
    statements: tuple[ast.stmt, ...] = ()
    texts: tuple[str, str] = ("", "")

    @contextmanager
    def made(self) -> Iterator[None]:
        """The tree has the mistake for as long as the block."""
        before = [(node, name, getattr(node, name)) for node, name, _ in self.slots]
        try:
            for node, name, value in self.slots:
                setattr(node, name, value)
            yield
        finally:
            for node, name, value in before:
                setattr(node, name, value)

    def before_and_after(self) -> tuple[str, str]:
        """The text of what it changes, without and with it."""
        if not self.statements:
            return self.texts
        before = "; ".join(map(heading, self.statements))
        with self.made():
            return _shortened(before, "; ".join(map(heading, self.statements)))


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Of long texts what differs, and some of what is around."""
    if max(len(before), len(after)) <= _LONGEST:
        return before, after
    same = _alike(before, after)
    rest = _alike(before[same:][::-1], after[same:][::-1])
    return _window(before, same, rest), _window(after, same, rest)


def _alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _window(text: str, same: int, rest: int) -> str:
    begin, end = max(0, same - _AROUND), min(len(text), len(text) - rest + _AROUND)
    return ("… " if begin else "") + text[begin:end] + (" …" if end < len(text) else "")


def heading(statement: ast.AST) -> str:
    """A statement in one line; of a compound one only what comes before its first block."""
    if isinstance(statement, ast.Try):
        return "try"
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return f"def {statement.name}"
    blocks = getattr(statement, "body", None)
    if not isinstance(blocks, list):
        return " ".join(ast.unparse(statement).split())
    lines = ast.unparse(statement).splitlines()
    first = next((number for number, line in enumerate(lines) if line.rstrip().endswith(":")), 0)
    return " ".join(" ".join(lines[: first + 1]).split())


def replaced(block: Sequence[ast.stmt], at: int, by: Sequence[ast.stmt], count: int = 1) -> list[ast.stmt]:
    """A block in which others take the place of some statements. It stays a block."""
    found = [*block[:at], *by, *block[at + count :]]
    return found or [placed(ast.Pass(), block[at])]


def placed(new: Any, old: ast.AST) -> Any:
    """A new node at the place of an old one."""
    return ast.fix_missing_locations(ast.copy_location(new, old))


def called(node: ast.AST) -> str:
    """The last part of the name that a call calls; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
