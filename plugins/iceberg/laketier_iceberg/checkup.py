"""Finds and repairs defects in a table's metadata that Java Iceberg refuses. Driver."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from laketier.spi import Conflict, FeatureNotSupported, StorageError, TableFinding, TablePath, host_time
from laketier_iceberg.clock import known_time, storage_time
from laketier_iceberg.connection import CatalogSettings, connect, naming_catalog_errors
from laketier_iceberg.loading import load
from laketier_iceberg.private import commit_mended, keep_times
from laketier_iceberg.spec import FORMAT
from laketier_iceberg.times import TOLERANCE_MS, ahead, disorder, newest

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata


_ATTEMPTS = 20


def checkup(metadata: TableMetadata, now: int) -> Sequence[TableFinding]:
    """Times out of order, and times that have not come yet at ``now``."""
    found = [
        TableFinding(what, "a commit by a clock that was more than a minute behind; Java Iceberg refuses the table")
        for what in disorder(metadata)
    ]
    if ahead(metadata, now):
        found.append(
            TableFinding(
                f"the newest time in the table is {_moment(newest(metadata))}, and it is {_moment(now)}",
                "a commit by a clock that was ahead. Java Iceberg can't write to the table "
                "until then, nothing expires by its age, and reading as of now leaves the newest rows out",
            )
        )
    return found


def mend(settings: CatalogSettings, path: TablePath) -> Sequence[TableFinding]:
    """Put the times in order, and none later than now by the storage's clock. Returns what is left. Raises `Conflict`,
    `FeatureNotSupported` for a catalog that writes metadata by itself, and `StorageError` where this host's clock says
    something else than the storage's: one of both is wrong, and a healthy table's times are not for it to mend."""
    from pyiceberg.exceptions import CommitFailedException

    if not keep_times(connect(settings)):
        raise FeatureNotSupported(
            "repair through this catalog",
            format=FORMAT,
            reason="its server writes the table's metadata, and takes no times from others",
            fix="Repair it where the server keeps its tables, or ask who runs it.",
        )
    for attempt in itertools.count(1):
        table = load(settings, path)
        now = storage_time(table.io.properties, table.location())
        if not checkup(table.metadata, now):
            break
        _refuse_wrong_clocks(now, str(path))
        try:
            with naming_catalog_errors(settings):
                commit_mended(table, now)
            break
        except CommitFailedException as error:
            if attempt == _ATTEMPTS:
                raise Conflict(
                    f"other commits came first, {attempt} times",
                    where=str(path),
                    why=str(error),
                    fix="Run it again when fewer commits are made to the table.",
                ) from error
    table = load(settings, path)
    return checkup(table.metadata, known_time(table))


def _refuse_wrong_clocks(now: int, where: str) -> None:
    here = host_time()
    if abs(here - now) > TOLERANCE_MS:
        raise StorageError(
            f"this host's clock says {_moment(here)}, and the storage's {_moment(now)}; nothing was changed",
            where=where,
            why="it is unknown which of them is right, and a wrong one would spoil the times of the table",
            fix="Set the clock that is wrong, and run it again.",
        )


def _moment(milliseconds: int) -> str:
    try:
        return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
