"""The members of the workspace agree with each other, with the lock and with what is installed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions, requires, version
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from laketier.cli.service import SERVER
from laketier_conformance.rules import RULES
from workspace import FORMATS, ROOT, Member, members, plugins

OURS = [member for member in members() if "third_party" not in member.folder.parts]


@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_member_is_whole(member: Member) -> None:
    project = member.pyproject["project"]
    assert project["requires-python"] == ">=3.11"
    assert project["license"] == "Apache-2.0"
    assert (member.folder / project["readme"]).is_file()
    assert version(member.name) == project["version"], "installed is another version: run make setup"


@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_member_is_typed(member: Member) -> None:
    for package in member.pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert (member.folder / package / "py.typed").is_file()


def test_the_wheel_has_the_pages_that_failures_name() -> None:
    wheel = members()[0].pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in wheel["shared-data"].items():
        assert target == f"share/doc/laketier/{source}"
    for rule in RULES:
        page = rule.guide.partition("#")[0]
        assert any(page == source or page.startswith(f"{source}/") for source in wheel["shared-data"]), page
        assert (ROOT / page).is_file()


def test_our_versions_go_together() -> None:
    assert len({member.pyproject["project"]["version"] for member in OURS}) == 1


def test_each_format_has_an_extra_that_names_its_distribution() -> None:
    extras = members()[0].pyproject["project"]["optional-dependencies"]
    for member in OURS:
        for name in member.formats:
            assert extras[name] == [member.name]


def test_each_source_of_a_distribution_has_an_extra_that_names_it() -> None:
    extras = members()[0].pyproject["project"]["optional-dependencies"]
    points = {member.name: member.pyproject["project"].get("entry-points", {}) for member in OURS[1:]}
    named = {name: [owner] for owner, groups in points.items() for name in groups.get("laketier.sources", {})}
    assert {"fluss", "kafka"} <= named.keys()
    assert {name: extras[name] for name in named} == named


def test_what_the_service_asks_for_is_what_its_extra_brings() -> None:
    extras = members()[0].pyproject["project"]["optional-dependencies"]
    assert tuple(re.split("[^a-z0-9-]", each)[0].replace("-", "_") for each in extras["server"]) == SERVER


def test_a_format_belongs_to_one_distribution_only() -> None:
    names = [name for member in plugins() for name in member.formats]
    assert len(names) == len(set(names))


def test_entry_points_are_installed_as_declared() -> None:
    declared = {name: module for member in plugins() for name, module in member.formats.items()}
    installed = {point.name: point.value for point in entry_points(group=FORMATS)}
    assert installed == declared, "run make setup"


def test_folders_of_the_checkout_are_no_packages(tmp_path: Path) -> None:
    folders = ("core", "plugins", "conformance", "verification")
    code = f"import importlib.util as u; print([n for n in {folders} if u.find_spec(n)])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_lock_names_the_public_index_only() -> None:
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}


def test_the_lock_holds_every_member_from_the_checkout() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    local = {package["name"] for package in packages if "editable" in package["source"]}
    assert local == {member.name for member in members()}


def test_no_file_names_a_place_on_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: an unpacked sdist has no list of files")
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    here = str(ROOT).encode()
    assert [str(path) for path in files if path.is_file() and here in path.read_bytes()] == []


def test_what_tests_import_comes_with_them() -> None:
    """Environments such as that of `make test-compat` have the group `test`, and neither `docs` nor `lint`."""
    there, brought = packages_distributions(), _brought()
    strange = {
        f"{file.relative_to(ROOT)}:{node.lineno}: {name}"
        for folder in ("tests", "plugins", "conformance", "verification")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if "third_party" not in file.parts
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        for name in _imported(node)
        if name in there and not brought & {canonicalize_name(each) for each in there[name]}
    }
    assert not strange, f"put its distribution into the group `test` of pyproject.toml: {sorted(strange)}"


def _imported(node: ast.stmt) -> set[str]:
    match node:
        case ast.Import(names=names):
            return {alias.name.partition(".")[0] for alias in names}
        case ast.ImportFrom(module=str(module), level=0):
            return {module.partition(".")[0]}
    return set()


def _brought() -> set[str]:
    """The distributions of the group `test`, of the members with all their extras, and what these need."""
    projects = [member.pyproject["project"] for member in members()]
    asked = [*members()[0].pyproject["dependency-groups"]["test"]]
    for project in projects:
        asked += [project["name"], *project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())]
    found: set[tuple[str, str]] = set()
    wanted = [Requirement(text) for text in asked]
    while wanted:
        each = wanted.pop()
        for extra in ("", *each.extras):
            known = (canonicalize_name(each.name), extra)
            if known not in found:
                found.add(known)
                wanted += [
                    needed
                    for needed in map(Requirement, _requires(each.name))
                    if needed.marker is None or needed.marker.evaluate({"extra": extra})
                ]
    return {name for name, _ in found}


def _requires(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # for another platform, or of another extra
        return []
