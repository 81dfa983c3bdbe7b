"""``laketier run JOB.yaml``: a job without a line of code."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from laketier.cli.lakes import Json
from laketier.cli.shown import print_json, say
from laketier.config.job import load_job
from laketier.tiering import RoundOutcome, RoundResult

EPILOG = "Example: [bold]laketier run orders.yaml[/]   (the tutorial has a job file)"


def run(
    job: Annotated[Path, typer.Argument(help="The job file.", show_default=False)],
    json: Json = False,
) -> None:
    """Run the job that a YAML file describes: a source, a table, and for a stream a checkpoint and a trigger."""
    work = load_job(job)
    # Spark is an extra, takes seconds to import, and only this command needs it.
    from laketier.spark.session import connect_server, require_java, require_pyspark

    require_pyspark()
    server = connect_server()
    if server is None:
        require_java()
    from laketier.spark.job import run_job
    from laketier.spark.progress import on_console

    if server is not None:
        # Its client says nothing by itself while it tries again for minutes.
        say(f"asking Spark Connect at {server} for a session; where nobody answers, that takes minutes", err=True)
    with on_console() as on_epoch:
        result = run_job(work, on_epoch=on_epoch, origin=str(job))
    totals, done = result.totals, result.round
    if json:
        figures: dict[str, Any] = {
            "table": str(result.config.table),
            "format": result.config.format,
            "lane": result.lane,
        }
        if totals is not None:
            figures |= {key: value for key, value in asdict(totals).items() if key != "started"}
        if done is not None:
            figures |= {"outcome": done.outcome.value, "rows": done.rows, "files": done.files, "bytes": done.bytes}
            figures["rows_written"] = 0 if done.outcome is RoundOutcome.ALREADY_THERE else done.rows
        print_json(figures)
    elif done is not None:
        say(f"{result.config.table}: {_told(done)}")
    else:
        say(f"{result.config.table}: {totals}")


def _told(done: RoundResult) -> str:
    if done.outcome is RoundOutcome.ALREADY_THERE:
        return f"{done.outcome.value}, as an epoch of {done.rows:,} rows; no row was written"
    return f"{done.outcome.value}, {done.rows:,} rows in {done.files} files"
