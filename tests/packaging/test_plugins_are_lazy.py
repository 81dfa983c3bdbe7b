"""Asking for one format imports nothing of another; naming it imports nothing of its engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from workspace import Member, plugins

LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def loaded_by(module: str) -> set[str]:
    command = [sys.executable, "-I", "-W", "error", "-c", LOADED, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("member", plugins(), ids=lambda member: member.name)
def test_importing_a_plugin_imports_neither_its_engine_nor_a_neighbour(member: Member) -> None:
    for module in member.formats.values():
        loaded = loaded_by(module)
        assert member.engines & loaded == set(), "import the engine where it is used"
        neighbours = {package for other in plugins() if other != member for package in other.packages}
        assert neighbours & loaded == set()
        assert {"pyspark", "py4j", "pandas"} & loaded == set()


def test_what_opens_local_files_imports_no_pandas() -> None:
    """Arrow imports it for the first scalar that is made, which takes longer than all that a new process needs."""
    assert "pandas" not in loaded_by("laketier_localfile.storage")


def test_the_engines_are_known() -> None:
    engines = {name: member.engines for member in plugins() for name in member.formats}
    assert engines["delta"] == {"deltalake"}
    assert "pyiceberg" in engines["iceberg"]
    assert "lance" in engines["lance"]
    assert engines["localfile"] == set()


@pytest.mark.parametrize(
    "module", ["laketier", "laketier.spi", "laketier.registry", "laketier.config", "laketier.cli.app"]
)
def test_the_core_starts_light(module: str) -> None:
    heavy = {"pyspark", "py4j", "pandas", "pytest", "hypothesis"} | set().union(*(p.engines for p in plugins()))
    assert heavy & loaded_by(module) == set()


def test_the_pytest_plugin_imports_nothing_heavy() -> None:
    """It is loaded in every pytest run of everyone who has laketier installed."""
    heavy = {"pyspark", "py4j", "pandas", "pyarrow", "hypothesis", "pydantic"}
    heavy |= set().union(*(member.engines for member in plugins()))
    assert heavy & loaded_by("laketier_conformance.plugin") == set()
