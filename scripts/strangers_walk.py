"""The kinds of ``scripts/strangers.py``: the commands that the workflow and the README of a new plugin name, taken as
they stand there by a shell that has nothing but the system's own programs. Then its wheel takes the place of the
folder, and in another one each test has to end as it did in the author's."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from strangers_runs import call, ran, told

ODD = "with blanks, C:\\back 100% #ünï [x]"
SPREAD = {"PYTEST_ADDOPTS": "-n 2 --dist loadfile"}
"""The whole suite is run twice. A plugin of pytest that shuffles tests is there, too."""
STEP = re.compile(r"^ +- run: (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = "  #"
SOURCE = "source"
"""The kind that is no format, and has a suite of its own."""
PARTLY = "verdict: partial"
"""What the whole suite ends with where there is no Spark, or for a source no format, as the README says."""


@dataclass(frozen=True)
class Shell:
    """A shell in a folder, with a home of its own and nothing of what this process has, but for pip's settings."""

    programs: Path
    home: Path
    folder: Path
    more: Mapping[str, str] = field(default_factory=dict)

    def says(self, line: str) -> tuple[int, str]:
        bare = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        pips = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        return ran(["/bin/sh", "-c", line], self.folder, {**bare, **pips, **self.more})


def walked(here: Path, wheel: Path, programs: Path, kind: str, tests: Sequence[str]) -> bool:
    """Whether all went as the files of a plugin of this kind say."""
    name, home = f"acme-{kind}", here / "home"
    above, elsewhere = here / ODD, here / "elsewhere" / kind
    for folder in (home, above, elsewhere):
        folder.mkdir(parents=True, exist_ok=True)
    call([programs / "pip", "install", "--quiet", wheel, "pytest-randomly"])
    call([programs / "laketier", "new-plugin", name, "--kind", kind], cwd=above)
    project = above / f"laketier-{name}"
    shell = Shell(programs, home, project, {"LAKETIER": str(wheel), **SPREAD})
    asked = f"--source {name}" if kind == SOURCE else name
    went = [_goes(shell, line, asked) for line in commands_of(project)]
    if not all(went):
        return False
    began = time.monotonic()
    call([programs / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", here / "made", project])
    (made,) = (here / "made").glob(f"laketier_{name.replace('-', '_')}-*.whl")
    call([programs / "pip", "install", "--quiet", "--no-deps", "--force-reinstall", made])
    words = ["python", "-m", "pytest", "--pyargs"]
    if kind == SOURCE:
        words += ["laketier_source_conformance", f"--log-source={name}", "--log-report=report.json"]
        words += [f"--log-test={test}" for test in tests]
    else:
        words += ["laketier_conformance", f"--lake-format={name}", "--lake-lanes=bare", "--lake-report=report.json"]
        words += [f"--lake-test={test}" for test in tests]
    _, said = Shell(programs, home, elsewhere).says(shlex.join(words))
    at_home, there = outcomes(project / f"{name}.json"), outcomes(elsewhere / "report.json")
    same = bool(there) and there.items() <= at_home.items()
    told(same, f"{len(there)} tests on its wheel, in another folder", began)
    if not same:
        print(said, sorted(there.items() - at_home.items()), file=sys.stderr)
    return same


def commands_of(project: Path) -> Sequence[str]:
    """Those of the workflow, then those of the README, each once. Comments stay, as a shell knows them."""
    named = STEP.findall((project / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    for block in BLOCK.findall((project / "README.md").read_text(encoding="utf-8")):
        named += [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    once: dict[str, str] = {}
    for line in named:
        once.setdefault(_without_comment(line), line)
    return list(once.values())


def outcomes(report: Path) -> dict[str, str]:
    """What became of each test; nothing where there is no report."""
    try:
        results = json.loads(report.read_text(encoding="utf-8"))["results"]
    except FileNotFoundError:
        return {}
    return {name: result["outcome"] for name, result in results.items()}


def _goes(shell: Shell, line: str, asked: str) -> bool:
    """``asked``: what `laketier conformance` is asked for."""
    began = time.monotonic()
    code, said = shell.says(line)
    whole = _without_comment(line).startswith(f"laketier conformance {asked} --report")
    well = code == 0 or (whole and PARTLY in said)
    told(well, _without_comment(line), began)
    if not well:
        print(said, file=sys.stderr)
    return well


def _without_comment(line: str) -> str:
    return line.partition(COMMENT)[0].strip()
