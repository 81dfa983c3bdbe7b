"""Which lines of some modules a block of code runs. Their code gets a mark before each statement: a trace of all calls
takes as long again as the tests, and sees nothing of the interpreters that a test starts. These write their marks into
a file, see ``startup``."""

from __future__ import annotations

import ast
import builtins
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType

from laketier_verification.mutants.edits import placed
from laketier_verification.mutants.source import Module, functions

MARK = "_a_line_of_laketier_runs"
"""What marks call: a built-in of the processes that record."""
WRITTEN = "LINES_OF_LAKETIER"
"""Environment: the file in which other processes write down what they run."""

Lines = Mapping[str, set[int]]
"""By module."""


def marked(module: Module) -> CodeType:
    """The module's own code, with marks in its functions."""
    copy = Module(module.name, module.file)
    for _, function in functions(copy.tree.body):
        _mark(function, module.name)
    return copy.code(())


def _mark(owner: ast.AST, module: str) -> None:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(owner, name, None)
        if not isinstance(block, list):
            continue
        found: list[ast.stmt] = []
        for at, statement in enumerate(block):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if at or not is_text:  # the first text is a docstring only where it comes first
                found += [_call(module, line, statement) for line in _lines_of(statement)]
            found.append(statement)
            _mark(statement, module)
        setattr(owner, name, found)
    for part in [*getattr(owner, "handlers", ()), *getattr(owner, "cases", ())]:
        _mark(part, module)


def _lines_of(statement: ast.stmt) -> list[int]:
    """Whether an error comes to a handler, only the error could tell: who begins the statement may see it."""
    return [statement.lineno, *(handler.lineno for handler in getattr(statement, "handlers", ()))]


def _call(module: str, line: int, where: ast.stmt) -> ast.stmt:
    made: ast.stmt = placed(ast.parse(f"{MARK}({module!r}, {line})").body[0], where)
    for node in ast.walk(made):
        ast.copy_location(node, where)
    return made


class Recorder:
    """Takes the marks of this process, and those that others write into ``file``, which is made anew. Once in a
    process's life."""

    def __init__(self, file: Path) -> None:
        self._file, self._found = file, defaultdict[str, set[int]](set)
        to = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC)
        os.environ[WRITTEN] = str(file)
        mine = os.getpid()

        def mark(module: str, line: int) -> None:
            if os.getpid() == mine:
                self._found[module].add(line)
            else:  # a fork of this one
                with suppress(OSError):
                    os.write(to, f"{module} {line}\n".encode())

        setattr(builtins, MARK, mark)
        self.others_wrote = False

    @contextmanager
    def lines(self, *, of_others: bool = True) -> Iterator[Lines]:
        """Of a block: whole when it is left. `others_wrote` is then whether other processes ran some. Without
        ``of_others`` these write nothing."""
        self._found.clear()
        self.others_wrote = False
        if not of_others:
            os.environ.pop(WRITTEN)
        try:
            yield self._found
        finally:
            os.environ[WRITTEN] = str(self._file)
        self._take_of_others()

    @contextmanager
    def apart(self) -> Iterator[Lines]:
        """Of a block within one of `lines`: whole when it is left. They are lines of the block around it, too."""
        self._take_of_others()
        before = {module: set(found) for module, found in self._found.items()}
        self._found.clear()
        inside: dict[str, set[int]] = {}
        try:
            yield inside
        finally:
            self._take_of_others()
            inside.update((module, set(found)) for module, found in self._found.items())
            for module, found in before.items():
                self._found[module] |= found

    def _take_of_others(self) -> None:
        text = self._file.read_text(encoding="utf-8")
        os.truncate(self._file, 0)
        self.others_wrote = self.others_wrote or bool(text)
        for each in text.splitlines():
            module, _, line = each.partition(" ")
            self._found[module].add(int(line))
