"""``laketier serve SERVICE.yaml``: keep many tables tiered, until told to stop."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from laketier.cli.serve_pages import exported, listening, shown, token_of
from laketier.cli.service import require_server
from laketier.cli.shown import say
from laketier.config.service import load_service
from laketier.spi import ConfigError

if TYPE_CHECKING:
    from laketier.config.service import Service
    from laketier.maintenance.index_builds import BuildParts, Train
    from laketier.rounds.log_engine import LogEngine
    from laketier.service.logs import JsonLines
    from laketier.service.metrics import MeasuredStore
    from laketier.service.state import Worker
    from laketier.service.tables import ServiceTables
    from laketier.service.worker import TieringWorker

_CLOSING_SECONDS = 5.0
TRY_LATER = 75
"""The exit code of a worker that could not begin as the server of its state database does not answer: EX_TEMPFAIL of
sysexits.h. Nothing is wrong with the file, and a supervisor starts it again later."""
_NAMED = 20  # so many tables are named in a message

EPILOG = "Example: [bold]laketier serve service.yaml[/]   (SIGTERM or Ctrl-C: end the rounds under way, then stop)"


def serve(
    service: Annotated[Path, typer.Argument(help="The service file.", show_default=False)],
    engine: Annotated[
        Literal["spark", "local"], typer.Option(help="Who runs the tasks: Spark, or threads of this process.")
    ] = "spark",
    until_idle: Annotated[bool, typer.Option(help="Stop when every table was tiered and none is due.")] = False,
    http: Annotated[
        str | None,
        typer.Option(help="Serve a read-only page and metrics there: HOST:PORT, or a port of 127.0.0.1.",
                     metavar="HOST:PORT", show_default=False),
    ] = None,
    health: Annotated[
        str | None,
        typer.Option(help="Serve only /healthz and /metrics there, independent of the page.",
                     metavar="HOST:PORT", show_default=False),
    ] = None,
    http_token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the page's token; or set LAKETIER_HTTP_TOKEN.", show_default=False),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="Log lines for people, or one JSON object per line.")
    ] = "text",
) -> None:  # fmt: skip
    """Tier the tables that a service file describes, each as fresh as it asks. Start more of it for more workers: they
    share the state database."""
    if http_token_file is not None and http is None and health is None:
        raise ConfigError("--http-token-file is set without --http", fix="Add --http HOST:PORT, or leave it out.")
    described = load_service(service)
    require_server()
    lines, say = _logging(log_format)
    from laketier.service.metrics import MeasuredStore
    from laketier.service.starting import check_opened, checked_sources, checked_tables
    from laketier.service.state import Worker
    from laketier.service.tables import ServiceTables

    here = Worker.here()
    lines.worker = here.id
    token = token_of(http, health, http_token_file)
    with (
        _later(),
        _logged(),
        listening(http, token) as page,
        listening(health, token, "--health") as own,
        nullcontext(checked_sources(described, origin=str(service))) as sources,
        MeasuredStore.open(described.state, service=described.name) as store,
        closing(ServiceTables(described, store, origin=str(service), sources=sources)) as tables,
        exported(described, store, here.id),
        shown(page, own, described, tables, store),
    ):
        if page is not None:
            say(f"{described.name}: {page.address.url}")
        if own is not None:
            say(f"{described.name}: {own.address.url}healthz")
        # What listens answers by now: a source may be silent for as long as its time-out.
        listed = checked_tables(described, sources, origin=str(service), strict=until_idle)
        tables.discover(listed)
        opened, unopened = tables.opened()
        check_opened(unopened, opened, origin=str(service))
        with _worker(engine, described, store, tables, here, until_idle=until_idle) as worker:
            _drain_when_told(worker)
            say(f"{described.name}: worker {here.id} serves")
            has_drained = worker.run()
            _tell_end(worker, has_drained, described, say)


@contextmanager
def _worker(
    engine: str, described: Service, store: MeasuredStore, tables: ServiceTables, here: Worker, *, until_idle: bool
) -> Iterator[TieringWorker]:
    """A worker, with the engine that it runs its tasks on."""
    from laketier.service.index_keeper import IndexKeeper
    from laketier.service.open_files import OpenFileKeeper
    from laketier.service.worker import TieringWorker, WorkerSettings

    with _engine(engine, described) as (runner, build, train):
        settings = WorkerSettings(lease_seconds=described.lease, drain_seconds=described.grace, until_idle=until_idle)
        keeper = IndexKeeper(store, tables, here, build, train=train, lease_seconds=described.lease)
        open_files = OpenFileKeeper(tables) if engine == "local" else None
        yield TieringWorker(store, tables, runner, settings, worker=here, keeper=keeper, open_files=open_files)


def _drain_when_told(worker: TieringWorker) -> None:
    """Let SIGTERM and Ctrl-C end the worker after the rounds under way."""

    def drain(_number: int, _frame: FrameType | None) -> None:
        worker.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, drain)


def _tell_end(worker: TieringWorker, has_drained: bool, described: Service, say: Callable[[str], None]) -> None:
    """Say how the worker ended. Raises `typer.Exit` where tables were cut off or left out, and `EngineLost`."""
    name = worker.worker.id
    if not has_drained:
        say(_cut_off(described, name, worker.cut_off))
        _leave_in(_CLOSING_SECONDS)
        raise typer.Exit(1)
    if worker.engine_lost is not None:
        raise worker.engine_lost
    if worker.left_out:
        say(_left_out(described, name, worker.left_out))
        raise typer.Exit(1)
    if worker.interrupted:
        say(f"{described.name}: worker {name} was stopped before all tables were tiered")
        raise typer.Exit(1)
    say(f"{described.name}: worker {name} is done")


@contextmanager
def _later() -> Iterator[None]:
    from laketier.service.state import StateUnavailable

    try:
        yield
    except StateUnavailable as error:
        say(f"{type(error).__name__} {error}", err=True)
        raise typer.Exit(TRY_LATER) from error


def _cut_off(described: Service, worker: str, tables: Sequence[str]) -> str:
    named = ", ".join(tables[:_NAMED]) + (f" and {len(tables) - _NAMED} more" if len(tables) > _NAMED else "")
    return (
        f"{described.name}: worker {worker} ends with rounds under way, because its grace period of "
        f"{described.grace:g} s is over; cut off: {named or 'no table, but something still ran'}. Nothing is lost: the "
        "next round of each table reads the same offsets again"
    )


def _left_out(described: Service, worker: str, tables: Mapping[str, str]) -> str:
    lines = "".join(f"\n  - {name}: {why}" for name, why in list(tables.items())[:_NAMED])
    more = f"\n  and {len(tables) - _NAMED} more: see `laketier service status`" if len(tables) > _NAMED else ""
    return f"{described.name}: worker {worker} is done, and {len(tables)} tables were not tiered:{lines}{more}"


def _leave_in(seconds: float) -> None:
    """End the process, however it hangs: neither a thread that reads for ever nor a client that does not close may
    keep a worker alive that was told to stop. The threads of pools are waited for at the interpreter's end."""
    timer = threading.Timer(seconds, os._exit, [1])
    timer.daemon = True
    timer.start()


def _logging(log_format: str) -> tuple[JsonLines, Callable[[str], None]]:
    """How lines look, and how the worker says what it is about. Before anything is imported that logs."""
    from laketier.service.logs import JsonLines

    lines = JsonLines()
    if log_format == "text":
        return lines, partial(say, err=True)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(lines)
    return lines, logging.getLogger(__name__).info


@contextmanager
def _logged() -> Iterator[None]:
    """Log what Python would write to standard error by itself: warnings, and the errors that end a thread. So they have
    the format of all lines, and no secrets."""

    def ended(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is SystemExit:
            return
        error = args.exc_value or args.exc_type()
        logging.getLogger(__name__).error("%s ended with an error", args.thread and args.thread.name, exc_info=error)

    before, threading.excepthook = threading.excepthook, ended
    logging.captureWarnings(True)
    try:
        yield
    finally:
        threading.excepthook = before
        logging.captureWarnings(False)


@contextmanager
def _engine(name: str, service: Service) -> Iterator[tuple[LogEngine, BuildParts, Train]]:
    """What runs the tasks of rounds; and what builds the parts of indexes beside them, and trains their models."""
    if name == "local":
        from laketier.maintenance.index_builds import build_here, train_here
        from laketier.rounds.log_engine import LocalEngine

        engine = LocalEngine()
        try:
            yield engine, build_here, train_here
        except BaseException:
            # Tasks may hang, and whoever stops the worker has waited for them already.
            engine.close(wait=False)
            raise
        engine.close()
        return
    # Spark is an extra, and takes seconds to import.
    from laketier.spark.session import get_or_create, require_java, require_pyspark

    require_pyspark()
    require_java()
    from laketier.spark.indexing import build_in_tasks, train_in_task
    from laketier.spark.log_engine import SparkLogEngine

    session = get_or_create()
    for key, value in service.spark.items():
        session.conf.set(key, value)
    runner = SparkLogEngine(session)  # first, as it refuses a session of Spark Connect
    # Spark gives free cores to the oldest job first: a build leaves half of them to the rounds.
    build = build_in_tasks(session, at_once=max(1, session.sparkContext.defaultParallelism // 2))
    yield runner, build, train_in_task(session)
