"""What wraps a part of the SPI passes all of it on: a method that it forgot would be the default, which refuses."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from laketier import spi
from laketier.registry import Lake

ROOT = Path(__file__).parents[3]
FOLDERS = ("core", "conformance", "plugins", "verification", "tests", "benchmarks")
CONTRACTS = {
    kind.__name__: kind
    for kind in vars(spi).values()
    if inspect.isclass(kind) and inspect.isabstract(kind) and kind.__module__.startswith("laketier.spi.")
}


def public(kind: type) -> set[str]:
    found = inspect.getmembers(kind, lambda member: inspect.isfunction(member) or isinstance(member, property))
    return {name for name, _ in found if not name.startswith("_")}


def wrappers(text: str) -> Iterator[tuple[str, str, set[str]]]:
    """Classes that derive a contract and have a field of it: name, contract, and what they define."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef):
            continue
        bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
        fields = {ast.unparse(each.annotation) for each in node.body if isinstance(each, ast.AnnAssign)}
        kinds = {field.partition("[")[0].rpartition(".")[2] for field in fields}
        for contract in bases & kinds & CONTRACTS.keys():
            yield node.name, contract, {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def test_wrappers_pass_everything_on() -> None:
    seen = {}
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(f"{contract})" in text or f"{contract}[" in text for contract in CONTRACTS):
            for name, contract, defined in wrappers(text):
                seen[name] = public(CONTRACTS[contract]) - defined
    assert "KeyedLog" in seen, "the search finds no wrapper any more"
    assert {name: sorted(forgotten) for name, forgotten in seen.items() if forgotten} == {}


def test_an_open_lake_has_what_its_storage_has() -> None:
    """Commands go through it, for the errors that it names. Its catalog is behind methods of its own."""
    assert public(spi.LakeStorage) - {"catalog"} <= public(Lake)
