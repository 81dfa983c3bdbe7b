"""Dependencies are bounded on both sides, and claim no version that `make test-matrix` did not try."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from workspace import ROOT, Member, members

OURS = [member for member in members() if "third_party" not in member.folder.parts]
ELSEWHERE = {"spark", "demo"}
"""Extras of which docs/proof/versions.md says how they are tried."""


@pytest.fixture(scope="module")
def matrix() -> ModuleType:
    spec = importlib.util.spec_from_file_location("matrix", ROOT / "scripts" / "matrix.py")
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return made


def libraries(member: Member) -> dict[str, list[Requirement]]:
    """Extra, or "" for what is always needed → what it names of others."""
    project = member.pyproject["project"]
    named = {"": project["dependencies"], **project.get("optional-dependencies", {})}
    found = {extra: [Requirement(line) for line in lines] for extra, lines in named.items()}
    return {extra: [each for each in all_ if not each.name.startswith("laketier")] for extra, all_ in found.items()}


@pytest.mark.parametrize("member", OURS, ids=lambda member: member.name)
def test_a_library_has_an_oldest_version_and_one_that_is_too_new(member: Member) -> None:
    for each in (each for extra in libraries(member).values() for each in extra):
        operators = sorted(specifier.operator for specifier in each.specifier)
        assert operators == ["<", ">="], f"{each}: say the oldest that was tried, and the first that was not"


@pytest.mark.parametrize("member", OURS, ids=lambda member: member.name)
def test_the_ends_of_a_range_are_those_that_were_tried(member: Member, matrix: ModuleType) -> None:
    name = "core" if member.folder == ROOT else member.folder.name
    locked = {each["name"]: each.get("version") for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    rows = matrix.rows_of(matrix.PAGE.read_text(encoding="utf-8"))
    on_page = {library: versions for case, library, *versions in rows if case == name}
    bounds = {each.name: each.specifier for extra, all_ in libraries(member).items() if extra not in ELSEWHERE
              for each in all_}  # fmt: skip
    for library, specifier in bounds.items():
        # `make test` tries the locked version with all others.
        said = on_page.get(library, [matrix.UNTRIED] * 2)
        oldest, newest = (Version(locked[library] if each == matrix.UNTRIED else each) for each in said)
        (lower,) = (Version(each.version) for each in specifier if each.operator == ">=")
        assert lower == oldest, f"{library}{specifier} was tried from {oldest} on: make test-matrix ARGS={name}"
        assert newest in specifier, f"{library} {newest} was tried, and is not in {specifier}"


def test_each_distribution_is_tried(matrix: ModuleType) -> None:
    tried = {str(Path(folder)) for case in matrix.CASES for folder in case.members}
    assert tried == {str(member.folder.relative_to(ROOT)) for member in OURS if member.folder != ROOT}


def test_only_what_is_green_is_written(matrix: ModuleType) -> None:
    cases = {case.name: case for case in matrix.CASES}
    text = f"# Page\n\n{matrix.RULE}\n| delta | deltalake | 1.0 | 1.1 |\n| lance | pylance | 1 | 2 |\n"

    def run(name: str, end: str, version: str, result: str = "ok") -> object:
        library = {"delta": "deltalake", "lance": "pylance", "iceberg": "pyiceberg"}[name]
        return matrix.Run(cases[name], end, {library: version}, result, 1.0)

    assert matrix.page(text, [run("lance", "oldest", "7", "FAILED: 1 failed")]) == text
    assert matrix.page(text, [run("lance", "oldest", "7")]) == text.replace("| 1 | 2 |", "| 7 | 2 |")
    assert "| iceberg | pyiceberg | locked | 9 |" in matrix.page(text, [run("iceberg", "newest", "9")])
