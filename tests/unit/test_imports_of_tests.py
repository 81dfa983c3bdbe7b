"""No module of tests imports another one: what two of them share has a module of its own, which can be read alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    *sorted(ROOT.glob("conformance/laketier_conformance/test_*.py")),
    *sorted(ROOT.glob("plugins/*/tests/test_*.py")),
    *sorted(ROOT.glob("tests/**/test_*.py")),
]


def _imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (name.name for name in node.names)


def test_no_module_of_tests_imports_one_of_its_folder() -> None:
    assert len(MODULES) > 300
    found = []
    for module in MODULES:
        beside = {path.stem for path in module.parent.glob("test_*.py")}
        taken = sorted({name.rpartition(".")[2] for name in _imported(module)} & beside)
        found += [f"{module.relative_to(ROOT)} imports {name}" for name in taken]
    assert not found
