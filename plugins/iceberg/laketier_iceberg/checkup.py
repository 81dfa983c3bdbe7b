"""What is wrong with a table's metadata for Java Iceberg, and mending it. Driver."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from laketier.spi import Conflict, FeatureNotSupported, TableFinding, TablePath
from laketier_iceberg.catalog import load
from laketier_iceberg.connection import CatalogSettings, connect, naming_catalog_errors
from laketier_iceberg.spec import FORMAT
from laketier_iceberg.staging import commit_mended, keep_times
from laketier_iceberg.times import ahead, disorder, newest, now_ms

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata


_ATTEMPTS = 20


def checkup(metadata: TableMetadata) -> Sequence[TableFinding]:
    """Times out of order, and times that have not come yet."""
    found = [
        TableFinding(what, "a commit by a clock that was more than a minute behind; Java Iceberg refuses the table")
        for what in disorder(metadata)
    ]
    now = now_ms()
    if ahead(metadata, now):
        found.append(
            TableFinding(
                f"the newest time in the table is {_moment(newest(metadata))}, and it is {_moment(now)} here",
                "a commit by a clock that was ahead, or this host's is behind. Java Iceberg can't write to the table "
                "until then, nothing expires by its age, and reading as of now leaves the newest rows out",
            )
        )
    return found


def mend(settings: CatalogSettings, path: TablePath) -> Sequence[TableFinding]:
    """Put the times in order, and none later than now. Returns what is left. Raises `Conflict`, and
    `FeatureNotSupported` for a catalog that writes metadata by itself."""
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
        if not checkup(table.metadata):
            break
        try:
            with naming_catalog_errors(settings):
                commit_mended(table)
            break
        except CommitFailedException as error:
            if attempt == _ATTEMPTS:
                raise Conflict(
                    f"other commits came first, {attempt} times",
                    where=str(path),
                    why=str(error),
                    fix="Run it again when less is written to the table.",
                ) from error
    return checkup(load(settings, path).metadata)


def _moment(milliseconds: int) -> str:
    try:
        return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
