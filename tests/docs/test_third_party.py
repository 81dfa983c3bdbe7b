"""docs/proof/third-party.md says how many lines each format has today."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "proof" / "third-party.md"
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(source: str) -> int:
    """Without docstrings, comments and empty lines."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - texts)


def test_lines_are_counted_without_words() -> None:
    assert (
        lines_of_code(
            '"""A module."""\n\n# why\nx = (\n    1,  # one\n)\n\n\ndef f():\n    """Says."""\n    return x\n'
        )
        == 5
    )


@pytest.mark.parametrize("name", ["vortex", "sqlite", "ducklake"])
def test_the_page_tells_lines_of_today(name: str) -> None:
    found = sum(
        lines_of_code(file.read_text(encoding="utf-8"))
        for file in (ROOT / "tests" / "third_party" / name / f"{name}_lake").glob("*.py")
    )
    (row,) = re.findall(rf"^\| \[\w+\]\(\S*/{name}/README\.md\) .*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    cell = row.split("|")[4]
    told = re.findall(r"[0-9]+", cell)
    assert told, f"the row of {name} tells no lines: {row}"
    assert str(found) in told, f"{name} has {found} lines, and {PAGE.name} tells {cell.strip()}"
