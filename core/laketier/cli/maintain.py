"""``laketier maintain``: what failed attempts left, which rounds may not end any more, what others stumble over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.table import Table as RichTable

from laketier.cli.ages import parse_age, parse_safe_age
from laketier.cli.expire import expire
from laketier.cli.lakes import Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.cli.watermarks import moment
from laketier.maintenance.orphans import DEFAULT_GRACE, Collection, collect_orphans, list_orphans
from laketier.spi import Feature, OpenDataFile, OrphanFile, attempt_began_at, require
from laketier.tiering.horizon import Horizon, lower_horizon, show_horizon

app = typer.Typer(help="Keep tables tidy.", no_args_is_help=True)

_SHOWN = 20


@app.command(epilog="Example: [bold]laketier maintain orphans sales.orders -c lake.yaml --older-than 7d --delete[/]")
@takes_lake
def orphans(
    options: LakeOptions,
    older_than: Annotated[str, typer.Option("--older-than", help="The grace period: 90m, 36h or 3d.")] = (
        f"{DEFAULT_GRACE.days}d"
    ),
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the orphans. Without --delete nothing is changed.")
    ] = False,
    no_other_writers: Annotated[
        bool,
        typer.Option(
            "--no-other-writers",
            help="Only laketier writes to the table, so a grace period below 24 hours is safe.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """List the unreferenced files of a table, with sizes and ages; delete them with --delete.

    Rounds of laketier that staged files before the grace period and are not committed yet are refused, and must be run
    again. Other writers are not refused: only the grace period protects their files. --delete uses the clock of the
    storage. A list, which changes nothing, uses this host's clock.
    """
    if delete and not no_other_writers:
        grace = parse_safe_age(
            older_than,
            why="a slow commit of another tool may still need files that young",
            unless="--no-other-writers if only laketier writes to the table",
        )
    else:
        grace = parse_age(older_than)
    lake, info = options.opened()
    require(lake.config.format, lake.plugin.features, Feature.ORPHAN_COLLECTION)
    collect = collect_orphans if delete else list_orphans
    found = collect(lake.storage, info, grace=grace)
    if json:
        print_json(_document(found))
    else:
        _print(found, deleted=delete)
    if delete and len(found.removed) < len(found.orphans):
        say("some were not deleted: they were published meanwhile, or the storage refused (see above)", err=True)


@app.command(epilog="Example: [bold]laketier maintain horizon sales.orders -c lake.yaml --lower[/]")
@takes_lake
def horizon(
    options: LakeOptions,
    lower: Annotated[
        bool, typer.Option("--lower", help="Lower a horizon in the future to the present time of the storage.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Show the horizon: the moment up to which orphans were collected. Files staged before it are not published.

    The horizon lies in the future if a clock was ahead when orphans were collected. Rounds that begin now are not
    affected. Rounds that were under way are refused, and new orphans are not collected until that moment. --lower
    corrects the horizon. Do not run it while orphans are collected.
    """
    lake, info = options.opened()
    if lower:
        if not yes:
            typer.confirm(f"No collection of orphans of {info.path} is under way?", abort=True, err=True)
        lower_horizon(lake.tiering_factory(info), info.table_uuid)
    found = show_horizon(lake.current_state())
    if json:
        print_json(horizon_document(found))
    else:
        say(horizon_text(found))


def horizon_document(found: Horizon | None) -> dict[str, Any] | None:
    """For machines."""
    return None if found is None else {"at": found.at, "set_at": found.set_at, "ahead": found.ahead}


def horizon_text(found: Horizon | None) -> str:
    """For people: one line."""
    if found is None:
        return "orphans were never collected"
    text = f"orphans from before {moment(found.at)} were collected"
    if found.ahead:
        text += f": that is {_duration(found.ahead / 1000)} ahead of this host's clock"
    return text


@app.command(epilog="Example: [bold]laketier maintain repair sales.orders -c lake.yaml --apply[/]")
@takes_lake
def repair(
    options: LakeOptions,
    apply: Annotated[
        bool, typer.Option("--apply", help="Repair the defects. Without --apply nothing is changed.")
    ] = False,
    json: Json = False,
) -> None:
    """List defects in a table's metadata that disturb other tools; repair them with --apply.

    Snapshots, rows and pipelines stay as they are. The exit code is 1 when defects are left.
    """
    lake, info = options.opened()
    maintenance = lake.maintenance(info)
    found = maintenance.findings()
    left = maintenance.repair() if apply and found else found
    if json:
        print_json({"findings": [asdict(each) for each in found], "left": [asdict(each) for each in left]})
    elif not found:
        say("nothing to repair")
    else:
        for each in found:
            say(f"{'still' if each in left else 'repaired'}: {each.what}" if apply else f"{each.what}: {each.why}")
        if not apply:
            say("nothing was changed; --apply repairs it")
    if left:
        raise typer.Exit(1)


@app.command(
    "open-files",
    epilog="Example: [bold]laketier maintain open-files sales.orders -c lake.yaml --pipeline clicks --finish[/]",
)
@takes_lake
def open_files(
    options: LakeOptions,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", "-p", help="Only the files of this pipeline.", metavar="PIPELINE")
    ] = None,
    finish: Annotated[bool, typer.Option("--finish", help="Finish them. Without --finish nothing is changed.")] = False,
    json: Json = False,
) -> None:
    """List the data files that pipelines keep open across epochs; finish them with --finish.

    Other readers see the rows of a file once it is finished. Its pipeline's next commit does that. For a pipeline that
    never comes back, --finish does it: it writes what was recorded as another file, in a commit that adds no rows. It
    is safe while the pipeline runs, or wakes up: its next epoch goes into a new file.

    The exit code is 1 when files could not be finished.
    """
    lake, info = options.opened()
    maintenance = lake.maintenance(info)
    found = [file for file in maintenance.open_files() if pipeline is None or file.pipeline == pipeline]
    pipelines = sorted({file.pipeline for file in found})
    left = maintenance.finish_open_files(pipelines) if finish and found else found
    if json:
        print_json({"files": [asdict(file) for file in found], "left": [asdict(file) for file in left]})
    else:
        _print_open(found, left, finish=finish)
    if finish and left:
        raise typer.Exit(1)


def _print_open(found: Sequence[OpenDataFile], left: Sequence[OpenDataFile], *, finish: bool) -> None:
    if not found:
        say("no open files")
        return
    out = RichTable()
    for column in ("pipeline", "file", "rows", "size", "begun", "last epoch", "committed"):
        out.add_column(column, overflow="fold")
    for file in found:
        out.add_row(
            file.pipeline,
            file.path,
            f"{file.rows:,}",
            decimal(file.bytes),
            _moment(file.began_at),
            "" if file.epoch is None else str(file.epoch),
            _moment(file.committed_at),
        )
    console().print(out)
    say(f"{len(found)} open files, {sum(file.rows for file in found):,} rows")
    if not finish:
        say("nothing was changed; --finish finishes them")
        return
    still = {file.path for file in left}
    say(f"{sum(file.path not in still for file in found)} finished")
    for file in left:
        say(f"still open: {file.path} (see the log above: for want of room, or begun meanwhile)", err=True)


app.command(epilog="Example: [bold]laketier maintain expire sales.orders -c lake.yaml --older-than 7d --delete[/]")(
    expire
)


def _moment(at: int | None) -> str:
    return "" if at is None else moment(at)


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
    if found.ahead:
        last = max(attempt_began_at(file.attempt) for file in found.ahead if file.attempt)
        say(
            f"{len(found.ahead)} orphans are left until {moment(last)}: by their names they were staged then, by a "
            "host whose clock is ahead"
        )
    if not found.orphans:
        say("no orphans")
        return
    out = RichTable()
    for column in ("file", "kind", "size", "age"):
        out.add_column(column, overflow="fold")
    for file in found.orphans[:_SHOWN]:
        out.add_row(file.path, file.kind, decimal(file.bytes), _age(file, found.at))
    console().print(out)
    if len(found.orphans) > _SHOWN:
        say(f"and {len(found.orphans) - _SHOWN} more (--json lists all)")
    total = decimal(sum(file.bytes for file in found.orphans))
    say(f"{len(found.orphans)} orphans, {total}")
    if deleted:
        gone = decimal(sum(file.bytes for file in found.removed))
        say(f"gone: {len(found.removed)}, {gone}, deleted here or by another collection meanwhile")
    else:
        say("nothing was changed; --delete deletes them")


def _age(file: OrphanFile, now: int) -> str:
    return _duration(max(0, now - file.modified_at) / 1000)


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
