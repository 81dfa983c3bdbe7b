"""Runs of the suite of sources, in processes of their own, as its user would."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import notes
import warmed


@dataclass(frozen=True)
class SourceRun:
    """A finished run."""

    code: int
    output: str
    report: dict[str, Any]

    def outcomes(self) -> dict[str, int]:
        """How many tests had which outcome."""
        found: dict[str, int] = {}
        for result in self.report.get("results", {}).values():
            found[result["outcome"]] = found.get(result["outcome"], 0) + 1
        return found


def offered(tmp_path: Path, name: str, module: str, harness: str) -> Path:
    """A folder that offers a source and its harness, as if it were installed."""
    info = tmp_path / "offers" / "offers-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[laketier.sources]\n{name} = {module}\n\n[laketier.source_conformance]\n{name} = {harness}\n"
    )
    return info.parent


def run_sources(
    tmp_path: Path,
    source: str,
    arguments: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    path: Sequence[Path] = (),
) -> SourceRun:
    """Run it on an installed source, on `notes`, or on one that is offered in ``path``."""
    found = path or (offered(tmp_path, "notes", "notes", "notes:NotesHarness"), Path(notes.__file__).parent)
    report, said = tmp_path / "report.json", tmp_path / "said"
    command = ["--pyargs", "laketier_source_conformance", f"--log-source={source}", f"--log-report={report}", "-q"]
    command += [*(f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "anyio")), *arguments]
    folder = tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, found)), **(variables or {})}
    code = warmed.run(command, folder, environment, said)
    return SourceRun(code, said.read_text(), json.loads(report.read_text()) if report.exists() else {})
