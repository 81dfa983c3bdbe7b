"""Plugins that were built for each version of the SPI that is accepted: this laketier loads and serves them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import FORMAT_SPI_VERSION, FORMAT_SPI_VERSIONS, SOURCE_SPI_VERSION, SOURCE_SPI_VERSIONS

HERE = Path(__file__).parent
FORMATS, SOURCES = sorted(HERE.glob("formats-*/*.whl")), sorted(HERE.glob("sources-*/*.whl"))
FOUND_SINCE = {
    "formats-3": {
        "test_bits.py::test_a_bit_of_a_file_has_another_value",  # Arrow's OSError of a damaged footer comes through
        "test_places.py::test_a_warehouse_without_a_name",
    }
}
"""Tests of the suite that are newer than a wheel, and find a mistake in the wheel's own code."""
_VERSION = re.compile(r'(spi_version = (?:"\w+", )?)(\d+)')


def install(wheel: Path, site: Path) -> Path:
    """As an installer does with a wheel of Python alone: unpack it, and compare with the digests that it lists."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (info,) = site.glob(f"{wheel.name.partition('-')[0]}-*.dist-info")
    for file in Distribution.at(info).files or ():
        digest = hashlib.sha256(Path(file.locate()).read_bytes()).digest()
        assert file.name == "RECORD" or (
            file.hash and file.hash.value.encode() == urlsafe_b64encode(digest).rstrip(b"=")
        )
    return site


def run(kind: str, folder: Path, site: Path) -> dict[str, Any]:
    """In a process whose first place for plugins is ``site``: those of the workspace are hidden behind it."""
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-W", "error", str(HERE / "serve.py"), kind, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert all(Path(module).is_relative_to(site) for module in found["modules"].values()), found["modules"]
    return found


def test_each_accepted_version_has_wheels_and_no_other() -> None:
    assert {wheel.parent.name for wheel in FORMATS} == {f"formats-{version}" for version in FORMAT_SPI_VERSIONS}
    assert {wheel.parent.name for wheel in SOURCES} == {f"sources-{version}" for version in SOURCE_SPI_VERSIONS}


@pytest.mark.parametrize("wheel", [*FORMATS, *SOURCES], ids=lambda wheel: wheel.parent.name)
def test_a_wheel_is_the_one_that_was_built(wheel: Path) -> None:
    """Of the version that its folder names. One that was built again shows nothing about plugins from before."""
    with zipfile.ZipFile(wheel) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/plugin.py")]
    assert [_VERSION.findall(text)[0][1] for text in texts] == [wheel.parent.name.rpartition("-")[2]]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert f"| {wheel.relative_to(HERE)} | " in (told := (HERE / "README.md").read_text(encoding="utf-8"))
    assert digest in told


@pytest.mark.parametrize("wheel", FORMATS, ids=lambda wheel: wheel.parent.name)
def test_a_format_serves(wheel: Path, tmp_path: Path) -> None:
    found = run("format", tmp_path / "lake", install(wheel, tmp_path / "site"))
    assert found.pop("modules").keys() == {"feather_lake"}
    assert found == {
        "outcomes": ["published", "already there"],
        "newest": [1, 2, 3],
        "appended": [3],
        "overwritten": [9],
        "older": [1, 2],
        "snapshots": 4,
        "orphans": 0,
    }


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("wheel", FORMATS, ids=lambda wheel: wheel.parent.name)
def test_a_format_conforms(wheel: Path, tmp_path: Path) -> None:
    """To the suite of today, but for what needs Spark."""
    site = install(wheel, tmp_path / "site")
    suite = ["-m", "pytest", "-q", "--pyargs", "laketier_conformance", "--lake-format=feather", "--lake-lanes=bare"]
    command = [sys.executable, *suite, "-p", "no:cacheprovider", f"--lake-report={tmp_path / 'report.json'}"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "report.json").exists(), done.stdout
    results = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["results"]
    odd = {name.partition("[")[0] for name, each in results.items() if each["outcome"] not in ("passed", "refused")}
    assert odd == FOUND_SINCE[wheel.parent.name], done.stdout


@pytest.mark.parametrize("wheel", SOURCES, ids=lambda wheel: wheel.parent.name)
def test_a_source_serves(wheel: Path, tmp_path: Path) -> None:
    found = run("source", tmp_path, install(wheel, tmp_path / "site"))
    assert found.pop("modules").keys() == {"lines_log"}
    bad = found.pop("bad")
    assert bad.startswith("IncompatibleData: the record at offset 3 of bucket '0' can't be read")
    assert found == {"rows": [2, 1, 0], "lake": [1, 2, 3], "union": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        (1, 'Upgrade the plugin: `pip install --upgrade {name}`. Its author follows "Versions" in {guide}'),
        (99, "Upgrade laketier: `pip install --upgrade laketier`; or install an older {name}."),
    ],
    ids=["older", "newer"],
)
def test_a_wheel_of_another_version_is_refused_by_name(version: int, fix: str, tmp_path: Path) -> None:
    """It is loaded far enough to read its version: whatever else it asks for is there."""
    site = tmp_path / "site"
    for wheel in (FORMATS[-1], SOURCES[-1]):
        install(wheel, site)
    for plugin in site.glob("*/plugin.py"):
        text, changed = _VERSION.subn(rf"\g<1>{version}", plugin.read_text(encoding="utf-8"))
        assert changed == 1
        plugin.write_text(text, encoding="utf-8")
    found = run("load", tmp_path, site)
    for name, module, noun, accepted, guide in (
        ("feather", "feather_lake", "formats", FORMAT_SPI_VERSION, "docs/authors/guide.md"),
        ("lines", "lines_log", "sources", SOURCE_SPI_VERSION, "docs/authors/sources.md"),
    ):
        said = f"{name} (laketier-{name} 0.1.0) was written for version {version} of the SPI of {noun}"
        assert found[name].startswith(f"SpiVersionMismatch: {module}.plugin: {said}, and this laketier accepts"), found
        assert f"{accepted}, because" in found[name]
        assert fix.format(name=f"laketier-{name}", guide=guide) in found[name]
