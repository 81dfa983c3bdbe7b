"""``laketier conformance FORMAT``: run the conformance suite on an installed format."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from laketier.plugins import load_format
from laketier.spi import ConfigError

EPILOG = "Example: [bold]laketier conformance my-format --report report.json -- -x[/]"


def conformance(
    context: typer.Context,
    format: Annotated[str, typer.Argument(help="The format, as in lake.format.")],
    report: Annotated[Path | None, typer.Option(help="Write the JSON report here.", show_default=False)] = None,
) -> None:
    """Prove a format: the whole suite in pytest, with a verdict (conformant, partial or fail). What follows `--` goes
    to pytest. Exit code 0 means conformant."""
    load_format(format)
    if importlib.util.find_spec("pytest") is None:
        raise ConfigError("the conformance suite needs pytest", fix="Install laketier's extra `conformance`.")
    command = [sys.executable, "-m", "pytest", "--pyargs", "laketier_conformance", f"--lake-format={format}"]
    if report is not None:
        command.append(f"--lake-report={report}")
    raise typer.Exit(subprocess.run([*command, *context.args], check=False).returncode)
