"""``laketier run JOB.yaml``: a job without a line of code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laketier.cli.lakes import Json

EPILOG = "Example: [bold]laketier run orders.yaml[/]   (see the tutorial for a job file)"


def run(
    job: Annotated[Path, typer.Argument(help="The job file.", show_default=False)],
    json: Json = False,
) -> None:
    """Run the job that a YAML file describes: a source, a lake table, a trigger."""
    # Spark is heavy to import, and only this command needs it.
    from laketier.spark.job import run_job_file

    run_job_file(job, json=json)
