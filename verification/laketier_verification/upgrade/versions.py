"""A version of laketier that can be run: this checkout, or a former commit."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
_IMPORTED = ("core", "conformance", "verification")


@dataclass(frozen=True)
class Version:
    """``bin`` has its ``python`` and its ``laketier``."""

    name: str
    bin: Path

    def start(
        self, *arguments: str, cwd: Path, log: Path, failpoints: str = "", program: str = "laketier"
    ) -> subprocess.Popen[bytes]:
        """What it says goes to ``log``."""
        environment = os.environ | {"LAKETIER_FAILPOINTS": failpoints, "COLUMNS": "200"}
        python = str(self.bin / "python")
        environment |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        command = [str(self.bin / program), *arguments]
        with log.open("wb") as out:
            return subprocess.Popen(command, cwd=cwd, env=environment, stdout=out, stderr=subprocess.STDOUT)

    def run(self, *arguments: str, cwd: Path, failpoints: str = "", program: str = "laketier") -> tuple[int, str]:
        """Its exit code, and what it said."""
        log = cwd / "said.log"
        code = self.start(*arguments, cwd=cwd, log=log, failpoints=failpoints, program=program).wait(900)
        return code, log.read_text(encoding="utf-8", errors="replace")


def today() -> Version:
    return Version("today", Path(sys.executable).parent)


def former(commit: str, folder: Path) -> Version:
    """A checkout of ``commit`` in ``folder``, with an environment whose libraries are those of this one."""
    git = ["git", "-C", str(ROOT)]
    said = subprocess.run([*git, "rev-parse", "--short", commit], capture_output=True, text=True, check=True).stdout
    archive = subprocess.run([*git, "archive", commit], capture_output=True, check=True).stdout
    checkout = folder / "checkout"
    checkout.mkdir()
    subprocess.run(["tar", "-x", "-C", str(checkout)], input=archive, check=True)
    return Version(said.strip(), _environment(checkout, folder / "environment"))


def _environment(checkout: Path, folder: Path) -> Path:
    """An installation as an editable one is: paths, and beside them the metadata with the entry points."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (libraries,) = Path(sys.prefix).glob("lib/python*/site-packages")
    for each in libraries.iterdir():
        if "laketier" not in each.name:
            (site / each.name).symlink_to(each)
    members = [checkout, *(project.parent for project in sorted(checkout.glob("plugins/*/pyproject.toml")))]
    for member in members:
        _install(tomllib.loads((member / "pyproject.toml").read_text(encoding="utf-8"))["project"], site)
    paths = [*(checkout / name for name in _IMPORTED), *members[1:]]
    (site / "members.pth").write_text("".join(f"{path}\n" for path in paths if path.exists()), encoding="utf-8")
    scripts = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, function = scripts["laketier"].split(":")
    command = folder / "bin" / "laketier"
    python = shlex.quote(str(folder / "bin" / "python"))
    code = f"import sys; from {module} import {function}; sys.argv[0] = 'laketier'; sys.exit({function}())"
    command.write_text(f'#!/bin/sh\nexec {python} -c {shlex.quote(code)} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return folder / "bin"


def _install(project: dict[str, object], site: Path) -> None:
    info = site / f"{str(project['name']).replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    (info / "RECORD").touch()
    (info / "entry_points.txt").write_text("\n".join(_entry_points(project)), encoding="utf-8")


def _entry_points(project: dict[str, object]) -> Iterator[str]:
    groups = project.get("entry-points", {})
    assert isinstance(groups, dict)
    for group, points in groups.items():
        yield f"[{group}]"
        yield from (f"{name} = {where}" for name, where in points.items())
