"""The checkout as its tests see it: the members of the workspace and what their pyproject files declare."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
FORMATS = "laketier.formats"


@dataclass(frozen=True)
class Member:
    folder: Path
    pyproject: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.pyproject["project"]["name"])

    @property
    def packages(self) -> list[str]:
        return [Path(path).name for path in self.pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]

    @property
    def formats(self) -> dict[str, str]:
        """The formats it offers: value of `lake.format` -> module."""
        return dict(self.pyproject["project"].get("entry-points", {}).get(FORMATS, {}))

    @property
    def engines(self) -> set[str]:
        """Top-level modules of its declared dependencies, laketier's own aside."""
        wanted = {Requirement(text).name for text in self.pyproject["project"]["dependencies"]} - {"laketier"}
        return {module for module, names in _modules_installed().items() if wanted & set(names)}


@cache
def _modules_installed() -> Mapping[str, list[str]]:
    """Top-level modules and the distributions that they are of. To look takes 0.1 s of CPU and more."""
    return packages_distributions()


def members() -> list[Member]:
    root = Member(ROOT, tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    files = sorted(ROOT.glob("plugins/*/pyproject.toml")) + sorted(ROOT.glob("tests/third_party/*/pyproject.toml"))
    apart = {ROOT / folder for folder in root.pyproject["tool"]["uv"]["workspace"]["exclude"]}
    inside = [file for file in files if file.parent not in apart]
    return [root, *(Member(file.parent, tomllib.loads(file.read_text(encoding="utf-8"))) for file in inside)]


def plugins() -> list[Member]:
    return [member for member in members() if member.formats]


def modules_of(package: str) -> list[Path]:
    """All source files of a room or package of the core, such as `laketier/spi` or `laketier`."""
    return sorted((ROOT / "core" / package).rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that some code imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def imports_at_start(tree: ast.Module) -> Iterator[str]:
    """What is imported as soon as the module is: outside functions and `if TYPE_CHECKING:`."""
    for statement in tree.body:
        yield from _imports_at_start(statement)


def _imports_at_start(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from imports(node)
    for child in ast.iter_child_nodes(node):
        yield from _imports_at_start(child)


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each string constant that is not a docstring; f-strings piece by piece."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
