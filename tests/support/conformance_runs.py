"""Formats that are offered without being installed, and runs of the suite on them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import laketier_conformance
import laketier_verification.mutants
import warmed

HERE = Path(__file__).parents[1] / "conformance"
SUITE = Path(laketier_conformance.__file__).parent
THIRD_PARTY = HERE.parent / "third_party"
FEATHER, SQLITE, VORTEX = (THIRD_PARTY / name for name in ("feather", "sqlite", "vortex"))
POOR = Path(laketier_verification.mutants.__file__).parent / "poor"
"""A Feather that declares nothing of what a format may leave out."""


@dataclass(frozen=True)
class Run:
    """A finished run of the suite."""

    code: int
    output: str
    report: dict[str, Any]

    reports: dict[str, dict[str, Any]]

    def outcome(self, test: str) -> str:
        return str(self.report["results"][test]["outcome"])


RunSuite = Callable[..., Run]


def suite_in(tmp_path: Path) -> RunSuite:
    """Runs the suite in a process of its own, as its user would. ``offers`` are formats to offer: name -> module. Of
    several formats (with commas) each has a report of its own."""

    def run(
        format: str,
        tests: Sequence[str] = (),
        *,
        offers: dict[str, str] | None = None,
        harnesses: dict[str, str] | None = None,
        arguments: Sequence[str] = (),
        paths: Sequence[Path] = (),
    ) -> Run:
        names = format.split(",")
        report = tmp_path / ("{format}.json" if len(names) > 1 else "report.json")
        what = [str(SUITE / test) for test in tests] or ["--pyargs", "laketier_conformance"]
        command = [*what, f"--lake-format={format}", f"--lake-report={report}"]
        # Hypothesis takes half a second to say in the summary that there is nothing to say, and the suite has no
        # coroutines.
        command += ["-q", *(f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "anyio"))]
        command += ["--lake-lanes=bare", *arguments]
        path = [
            str(offered(tmp_path / "offers", offers or {}, harnesses or {})),
            str(HERE / "wrong_plugins"),
            str(HERE / "servers"),
            str(HERE / "variants"),
            *map(str, (FEATHER, SQLITE, VORTEX, *paths)),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        folder = tmp_path / "elsewhere"
        folder.mkdir(exist_ok=True)
        (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n")
        code = warmed.run(command, folder, environment, tmp_path / "said")
        output = (tmp_path / "said").read_text()
        files = {name: Path(str(report).replace("{format}", name)) for name in names}
        reports = {name: json.loads(file.read_text()) if file.exists() else {} for name, file in files.items()}
        return Run(code, output, reports[names[0]], reports)

    return run


def offered(folder: Path, formats: dict[str, str], harnesses: dict[str, str]) -> Path:
    """A folder for PYTHONPATH whose metadata offers formats and harnesses, as an installed distribution would."""
    info = folder / "offers-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offers\nVersion: 1.0\n")
    groups = {"laketier.formats": formats, "laketier.conformance": harnesses}
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {value}\n" for n, value in names.items()) for group, names in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder
