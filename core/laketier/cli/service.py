"""``laketier service``: what the tables of a service do, and what people may tell them."""

from __future__ import annotations

import importlib.util
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from laketier.cli.lakes import MOST, Json
from laketier.cli.shown import console, print_json, say
from laketier.config.service import load_service
from laketier.spi import ConfigError, TableNotFound

if TYPE_CHECKING:
    from laketier.service.state import RegisteredTable, StateStore, TableStatus, WorkerSeen

app = typer.Typer(name="service", help="Show and control the tables of a service.")

File = Annotated[Path, typer.Argument(help="The service file.", show_default=False)]
Pattern = Annotated[str, typer.Argument(help="A table (source.table) or a pattern: 'clicks.orders_*'.")]

_NUMBERS = ("rows", "files", "bytes", "bad", "left")
_COLOURS = {"FAILED": "red", "STOPPED": "bold red", "TIERING": "cyan", "PAUSED": "yellow"}


SERVER = ("alembic", "jinja2", "prometheus_client", "sqlalchemy", "starlette", "uvicorn")
"""The packages of the extra `server`. An update of laketier alone does not bring what is new in it."""


def require_server() -> None:
    """Raises `ConfigError` when what the service stands on is not installed."""
    missing = [name for name in SERVER if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            "the service can't run in this environment",
            where=sys.executable,
            why=f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            fix="Install laketier's extra `server`.",
        )


@contextmanager
def opened_store(file: Path) -> Iterator[StateStore]:
    """The state store that a service file names."""
    described = load_service(file)
    require_server()
    from laketier.service.state import StateStore

    with StateStore.open(described.state, service=described.name) as store:
        yield store


@app.command(epilog="Example: [bold]laketier service status service.yaml --watch[/]")
def status(
    file: File,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Show each table: state, lag, age, last round, last failure and next attempt."""
    lease = load_service(file).lease
    with opened_store(file) as store:
        if json:
            # sqlalchemy, which the state needs, is an extra.
            from laketier.service.status import status_document

            print_json([status_document(each) for each in store.snapshot()])
            return
        out = console()
        if not watch:
            out.print(_shown_now(store, lease))
            return
        with Live(console=out, auto_refresh=False) as live:
            while True:
                live.update(_shown_now(store, lease), refresh=True)
                time.sleep(1)


@app.command(epilog="Example: [bold]laketier service rounds service.yaml clicks.orders --limit 20[/]")
def rounds(
    file: File,
    table: Annotated[str, typer.Argument(help="The table, as source.table.")],
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST, help="The number of rows, the newest first.")
    ] = 20,
    json: Json = False,
) -> None:
    """Show the last rounds of a table."""
    with opened_store(file) as store:
        found = [each for each in store.snapshot() if each.table.name == table]
        if not found:
            raise TableNotFound(
                f"the service has no table {table!r}",
                where=str(file),
                fix=f"Names are SOURCE.TABLE. `laketier service status {shlex.quote(str(file))}` lists them.",
            )
        # Of a recreated table there are two, and either may be the one that is in use.
        every = [record for each in found for record in store.rounds(each.table.id, limit)]
        history = sorted(every, key=lambda record: record.ended_at, reverse=True)[:limit]
    if json:
        print_json([asdict(record) for record in history])
        return
    shown = Table()
    for column in (
        "ended",
        "took",
        "ending",
        "epoch",
        "fence",
        "rows",
        "files",
        "bytes",
        "bad",
        "left",
        "worker",
        "error",
    ):
        shown.add_column(column, overflow="fold", justify="right" if column in _NUMBERS else "left")
    for record in history:
        shown.add_row(
            _moment(record.ended_at), f"{(record.ended_at - record.began_at) / 1000:.1f} s", record.ending,
            _text(record.epoch), str(record.fence), f"{record.rows:,}", f"{record.files:,}", f"{record.bytes:,}",
            f"{record.bad_records:,}", _text(record.lag_offsets), record.worker, escape(record.error or ""),
        )  # fmt: skip
    console().print(shown)


@app.command()
def workers(file: File, json: Json = False) -> None:
    """Show the workers, and the time of their last sign of life."""
    with opened_store(file) as store:
        seen = store.workers()
    if json:
        print_json([asdict(each) for each in seen])
        return
    shown = Table("worker", "host", "process", "version", "started", "last heard of")
    for each in seen:
        worker = each.worker
        shown.add_row(
            worker.id, worker.host, str(worker.pid), worker.version, _moment(each.started_at),
            _moment(each.heartbeat_at),
        )  # fmt: skip
    console().print(shown)


@app.command()
def pause(file: File, pattern: Pattern) -> None:
    """Stop tiering tables until they are resumed. A round under way ends first."""
    _tell(file, pattern, lambda store: store.pause, "paused")


@app.command()
def resume(file: File, pattern: Pattern) -> None:
    """Resume paused, stopped and dropped tables now."""
    _tell(file, pattern, lambda store: store.resume, "resumed")


@app.command()
def retier(file: File, pattern: Pattern) -> None:
    """Make tables due now, whatever their freshness."""
    _tell(file, pattern, lambda store: store.retier, "due now")


@app.command()
def drop(file: File, pattern: Pattern) -> None:
    """Take tables out of the service until they are resumed. Their lake tables stay as they are."""
    _tell(file, pattern, lambda store: store.drop, "dropped")


def _tell(
    file: Path, pattern: str, command: Callable[[StateStore], Callable[[str], tuple[str, ...]]], done: str
) -> None:
    with opened_store(file) as store:
        names = command(store)(pattern)
    for name in names:
        say(f"{name}: {done}")
    if not names:
        say(f"nothing to do: no table of {pattern!r} waits to be {done}")


def _shown_now(store: StateStore, lease: float) -> Table:
    statuses = store.snapshot()
    return _status_table(statuses, f"{_summary(statuses)}{_unserved(store.workers(), store.now(), lease)}")


def _unserved(workers: Sequence[WorkerSeen], now: int, lease: float) -> str:
    """Whom to look for where nobody tiers the tables: a worker whose state database takes no writes can't say so
    there, and one that died says nothing."""
    if any(each.is_heard_of(now, lease) for each in workers):
        return ""
    last = max(workers, key=lambda each: each.heartbeat_at, default=None)
    if last is None:
        return "\nNo worker has served them yet"
    how = "was heard of" if last.stopping_at is None else "ended; it was heard of"
    return f"\nNo worker serves them. The last one, {last.worker.id}, {how} at {_moment(last.heartbeat_at)}"


def _status_table(statuses: tuple[TableStatus, ...], caption: str) -> Table:
    shown = Table(caption=caption, caption_justify="left")
    for column in (
        "table",
        "state",
        "lake table",
        "behind",
        "asked",
        "left",
        "epoch",
        "rows",
        "bad",
        "last round",
        "error",
    ):
        numbers = column in ("behind", "asked", "left", "epoch", "rows", "bad")
        shown.add_column(column, overflow="fold", justify="right" if numbers else "left")
    for each in statuses:
        table, last = each.table, each.last_round
        behind = "-" if each.behind_seconds is None else _seconds(each.behind_seconds)
        told = table.error or ""
        if table.next_try_at is not None:
            told = f"{told} (try {table.failures + 1} at {_moment(table.next_try_at)})"
        shown.add_row(
            escape(table.name),
            f"[{_COLOURS.get(table.state.value, 'default')}]{table.state.value}[/]",
            f"{escape(table.target)} ({table.format})",
            behind if each.fresh else f"[red]{behind}[/]",
            _seconds(table.freshness_seconds),
            _left(table),
            _text(table.epoch),
            f"{table.rows_total:,}",
            f"{table.bad_records_total:,}",
            "-"
            if last is None
            else f"{last.rows:,} rows, {last.files} files, {(last.ended_at - last.began_at) / 1000:.1f} s",
            escape(told),
        )
    return shown


def _summary(statuses: tuple[TableStatus, ...]) -> str:
    fresh = sum(each.fresh for each in statuses)
    return f"{fresh} of {len(statuses)} tables are as fresh as they shall be"


def _left(table: RegisteredTable) -> str:
    if not table.lag_offsets or table.lag_seconds is None:
        return _text(table.lag_offsets)
    return f"{table.lag_offsets:,}, {_seconds(table.lag_seconds)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def _text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
