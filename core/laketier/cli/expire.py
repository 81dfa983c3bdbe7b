"""``laketier maintain expire``: the oldest snapshots of a table end."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer
from rich.filesize import decimal

from laketier.cli.ages import parse_age, parse_safe_age
from laketier.cli.lakes import MOST, Json, LakeOptions, takes_lake
from laketier.cli.shown import print_json, say
from laketier.spi import Expiry

_RETENTION = timedelta(days=7)


@takes_lake
def expire(
    options: LakeOptions,
    older_than: Annotated[
        str,
        typer.Option("--older-than", help="How long a snapshot stays after the next one came: 36h or 7d."),
    ] = f"{_RETENTION.days}d",
    keep: Annotated[
        int, typer.Option("--keep", min=1, max=MOST, help="How many of the newest snapshots stay in any case.")
    ] = 10,
    delete: Annotated[
        bool, typer.Option("--delete", help="End the snapshots and delete the files. Without it nothing is changed.")
    ] = False,
    no_readers: Annotated[
        bool,
        typer.Option("--no-readers", help="Nobody reads older snapshots, so less than 24 hours is safe."),
    ] = False,
    json: Json = False,
) -> None:
    """List the files that only old snapshots need; end these snapshots and delete the files with --delete.

    Rows and pipelines stay as they are. Snapshots that ended can't be read any more, and a stream that reads the
    table's commits has to be past them. --delete uses the clock of the storage. A list uses this host's clock.
    """
    if delete and not no_readers:
        retention = parse_safe_age(
            older_than,
            why="a read that is under way may still need files that young",
            unless="--no-readers if nobody reads older snapshots",
        )
    else:
        retention = parse_age(older_than)
    lake, info = options.opened()
    found = lake.maintenance(info).expire(retention=retention // timedelta(milliseconds=1), keep=keep, delete=delete)
    if json:
        print_json(asdict(found))
    else:
        _print_expiry(found, deleted=delete)
    if len(found.removed) < len(found.files) and delete:
        say("some were not deleted, as the storage refused (see above); the next run deletes them", err=True)


def _print_expiry(found: Expiry, *, deleted: bool) -> None:
    if not found.files:
        say("nothing to expire")
        return
    many = f"{len(found.files):,} files, {decimal(sum(file.bytes for file in found.files))}"
    if deleted:
        gone = sum(file.bytes for file in found.removed)
        say(f"{len(found.removed):,} of {many} deleted: {decimal(gone)}")
        say(f"the snapshots that are left are {found.earliest} to {found.newest}")
    else:
        say(f"{many}; snapshots {found.earliest} to {found.newest} would be left")
        say("nothing was changed; --delete ends the older snapshots")
