"""``laketier maintain orphans``: what failed attempts left behind."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.table import Table as RichTable

from laketier.cli.lakes import Json, LakeOptions, console, print_json, takes_lake
from laketier.cli.watermarks import moment
from laketier.spi import ConfigError, OrphanFile
from laketier.tiering.orphans import DEFAULT_GRACE, Collection, collect_orphans, list_orphans

app = typer.Typer(help="Keep tables tidy.", no_args_is_help=True)

_LEAST_GRACE = timedelta(hours=24)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHOWN = 20


@app.command(epilog="Example: [bold]laketier maintain orphans sales.orders -c lake.yaml --older-than 7d --delete[/]")
@takes_lake
def orphans(
    options: LakeOptions,
    older_than: Annotated[str, typer.Option("--older-than", help="The grace period: 90m, 36h or 3d.")] = (
        f"{DEFAULT_GRACE.days}d"
    ),
    delete: Annotated[bool, typer.Option("--delete", help="Delete them. Without it nothing is changed.")] = False,
    no_other_writers: Annotated[
        bool,
        typer.Option(
            "--no-other-writers",
            help="Nobody but laketier writes to the table, so a grace period below 24 hours is safe.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """List the files of a table that nothing references, with sizes and ages; delete them with --delete.

    Rounds of laketier that staged files so long ago and are not committed yet will be refused, and must be run again.
    Other writers know nothing of that: against them only the grace period helps.
    """
    grace = parse_duration(older_than)
    if delete and grace < _LEAST_GRACE and not no_other_writers:
        raise ConfigError(
            f"--older-than {older_than} is less than 24 hours",
            why="a slow commit of another tool may still need files that young",
            fix="Give a longer time, or --no-other-writers if only laketier writes to the table.",
        )
    lake, info = options.opened()
    collect = collect_orphans if delete else list_orphans
    found = collect(lake.storage, info, grace=grace)
    if json:
        print_json(_document(found))
    else:
        _print(found, deleted=delete)
    if delete and len(found.removed) < len(found.orphans):
        typer.echo("some were not deleted: they were published meanwhile, or the storage refused (see above)", err=True)


def parse_duration(text: str) -> timedelta:
    """``90s``, ``15m``, ``36h`` or ``3d``. Raises `ConfigError`."""
    match = re.fullmatch(r"\s*(\d+)\s*([smhd])\s*", text)
    if match is None:
        raise ConfigError(f"{text!r} is not a duration", fix="Write a number and s, m, h or d: 36h, 3d.")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _document(found: Collection) -> dict[str, Any]:
    gone = set(found.removed)
    files = [
        {
            "path": file.path,
            "kind": file.kind,
            "bytes": file.bytes,
            "modified": moment(file.modified_at),
            "deleted": file in gone,
        }
        for file in found.orphans
    ]
    return {"files": files, "bytes": sum(file.bytes for file in found.orphans), "deleted": len(gone)}


def _print(found: Collection, *, deleted: bool) -> None:
    if not found.orphans:
        typer.echo("no orphans")
        return
    out = RichTable()
    for column in ("file", "kind", "size", "age"):
        out.add_column(column, overflow="fold")
    for file in found.orphans[:_SHOWN]:
        out.add_row(file.path, file.kind, decimal(file.bytes), _age(file))
    console().print(out)
    if len(found.orphans) > _SHOWN:
        typer.echo(f"and {len(found.orphans) - _SHOWN} more (--json lists all)")
    total = decimal(sum(file.bytes for file in found.orphans))
    typer.echo(f"{len(found.orphans)} orphans, {total}")
    if deleted:
        typer.echo(f"{len(found.removed)} deleted, {decimal(sum(file.bytes for file in found.removed))}")
    else:
        typer.echo("nothing was changed; --delete deletes them")


def _age(file: OrphanFile) -> str:
    seconds = max(0, time.time() - file.modified_at / 1000)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
