"""``laketier serve SERVICE.yaml``: keep many tables tiered, until told to stop."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from laketier.config.service import load_service

if TYPE_CHECKING:
    from laketier.config.service import Service
    from laketier.sources.log_engine import LogEngine

EPILOG = "Example: [bold]laketier serve service.yaml[/]   (SIGTERM or Ctrl-C: end the rounds under way, then stop)"


def serve(
    service: Annotated[Path, typer.Argument(help="The service file.", show_default=False)],
    engine: Annotated[
        Literal["spark", "local"], typer.Option(help="Who runs the tasks: Spark, or threads of this process.")
    ] = "spark",
    until_idle: Annotated[bool, typer.Option(help="Stop once every table was tiered and nothing is due.")] = False,
) -> None:
    """Tier the tables that a service file describes, each as fresh as it asks. Start more of it for more workers: they
    share the state database."""
    described = load_service(service)
    from laketier.service.catalogue import Catalogue
    from laketier.service.state import StateStore
    from laketier.service.worker import TieringWorker, WorkerSettings

    with StateStore.open(described.state, service=described.name) as store:
        catalogue = Catalogue(described, store, origin=str(service))
        try:
            catalogue.discover()
            runner = _engine(engine, described)
            worker = TieringWorker(
                store, catalogue, runner, WorkerSettings(lease_seconds=described.lease, until_idle=until_idle)
            )

            def drain(_number: int, _frame: FrameType | None) -> None:
                worker.stop()

            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, drain)
            typer.echo(f"{described.name}: worker {worker.worker.id} serves", err=True)
            worker.run()
            typer.echo(f"{described.name}: worker {worker.worker.id} is done", err=True)
        finally:
            catalogue.close()


def _engine(name: str, service: Service) -> LogEngine:
    if name == "local":
        from laketier.sources.log_engine import LocalEngine

        return LocalEngine()
    # Spark is an extra, and takes seconds to import.
    from laketier.spark.session import get_or_create, require_java, require_pyspark

    require_pyspark()
    require_java()
    from laketier.spark.log_engine import SparkLogEngine

    session = get_or_create()
    for key, value in service.spark.items():
        session.conf.set(key, value)
    return SparkLogEngine(session)
