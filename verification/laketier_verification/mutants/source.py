"""The mutants of a module, and their code."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType

from laketier_verification.mutants.edits import Edit
from laketier_verification.mutants.operators import edits_of


@dataclass(frozen=True)
class Key:
    """What names a mutant, also after its function has moved. ``nth`` tells those apart that read the same."""

    module: str
    function: str
    operator: str
    before: str
    after: str
    nth: int = 0

    def order(self, seed: int) -> str:
        """By this mutants are drawn: any number of the first ones is a fair sample."""
        return hashlib.sha256(repr((seed, self)).encode()).hexdigest()


@dataclass(frozen=True)
class Mutant:
    """An edit of a function at the top of a module or of a class. ``outer``: the line at which that function begins."""

    key: Key
    edit: Edit
    outer: int

    @property
    def line(self) -> int:
        """Where it differs."""
        return self.edit.line


@dataclass(frozen=True)
class Module:
    """A module's source. ``without``: functions that are left alone."""

    name: str
    file: Path
    without: frozenset[str] = frozenset()

    @cached_property
    def text(self) -> str:
        """As it is."""
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """As it is, between edits."""
        return ast.parse(self.text)

    @cached_property
    def mutants(self) -> tuple[Mutant, ...]:
        """All of them."""
        found: list[Mutant] = []
        seen: Counter[tuple[str, ...]] = Counter()
        for qualified, function in functions(self.tree.body):
            for edit in edits_of(function) if qualified not in self.without else ():
                text = (qualified, edit.operator, *edit.before_and_after())
                if text[2] == text[3]:
                    continue
                key = Key(self.name, *text, nth=seen[text])
                seen[text] += 1
                found.append(Mutant(key, edit, _first_line(function)))
        return tuple(found)

    @cached_property
    def _closing_over_their_class(self) -> tuple[ast.FunctionDef, ...]:
        return tuple(
            function
            for _, function in functions(self.tree.body)
            if any(isinstance(node, ast.Name) and node.id in _CLASS for node in ast.walk(function))
        )

    def digest(self, function: str) -> str:
        """Of the text of a function: what was found of its mutants holds for this text."""
        for qualified, node in functions(self.tree.body):
            if qualified == function:
                return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:12]
        raise LookupError(f"{self.name} has no function {function}")

    def code(self, mutants: Iterable[Mutant]) -> CodeType:
        """The module with some mistakes in different functions. Raises `SyntaxError` and `ValueError`."""
        with ExitStack() as made:
            for mutant in mutants:
                made.enter_context(mutant.edit.made())
            for function in self._closing_over_their_class:
                made.enter_context(_keeping_the_class(function))
            return compile(self.tree, str(self.file), "exec", dont_inherit=True)


_CLASS = ("super", "__class__")


def functions(body: list[ast.stmt], within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Those at the top of a module or of a class, by qualified name."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield within + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from functions(node.body, within)


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


@contextmanager
def _keeping_the_class(function: ast.FunctionDef) -> Iterator[None]:
    """A function's code can be exchanged for one that closes over the same names: over its class, if it did so."""
    kept = ast.parse("if False: __class__").body[0]
    for node in ast.walk(kept):
        if hasattr(node, "lineno"):
            ast.copy_location(node, function.body[0])
    function.body.append(kept)
    try:
        yield
    finally:
        function.body.pop()
