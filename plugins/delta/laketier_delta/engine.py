"""The way into delta-rs: opening tables, and turning its failures into errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs

from laketier.kit.library_errors import errors_and_panics, in_one_line, refused_by_the_system
from laketier.kit.looks import is_absent
from laketier.spi import (
    CommitError,
    ConfigError,
    Conflict,
    CorruptTable,
    IncompatibleTable,
    StorageError,
    TableError,
    TableInfo,
    TableNotFound,
)
from laketier_delta.leftover import lone_entry
from laketier_delta.location import LOG, Location
from laketier_delta.log_version import last_checkpoint, look_at_each
from laketier_delta.table_features import advice

if TYPE_CHECKING:
    from deltalake import DeltaTable


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn a panic of delta-rs, which is no `Exception`, into a `CommitError`: what it left behind is unknown."""
    try:
        yield
    except errors_and_panics() as error:
        raise CommitError(
            "delta-rs panicked",
            why=str(error),
            fix="Start worker processes with spawn, not fork; otherwise report it to delta-rs.",
        ) from error


_NOT_READ = re.compile(r"Unsupported: |Max catalog version error|Unsupported table features")
_FEATURE = re.compile(r"Feature '([^']+)'")
_CHANGED = re.compile(
    r"Expected contiguous commit files|File not found|No files in log segment|Path does not exist|"
    r"Failed to canonicalize|Local path .* does not exist|(?s:Invalid table location: .*\bkind: NotFound\b)|"
    r"No (?:table metadata|protocol|table metadata or protocol) found|Invalid Checkpoint: |LogSegment end version"
)
"""What delta-rs says of a log that others add to, drop or create while it lists and reads it, or of which it leaves out
an entry that the storage could not tell of; also of a damaged one."""
LISTINGS = 5
"""A folder that others add files to while it is listed may show a file and not the one that was made before it; a table
may be dropped or created meanwhile. So a log is taken for damaged only when it looks so each time."""


def open_table(location: Location, version: int | None = None) -> DeltaTable:
    """A fresh handle. Raises `TableNotFound`, `CorruptTable`, `IncompatibleTable` for a table that delta-rs does not
    read, or `StorageError` when storage fails."""
    from deltalake.exceptions import DeltaError

    try:
        handle = _opened(location, version) if version is not None else _newest(location)
        _refuse_empty(location, handle.version())
        return handle
    except ConfigError:  # of the settings of the storage: it is a ValueError, too
        raise
    except (DeltaError, FileNotFoundError, ValueError) as error:  # the last one of values that no column can have
        if refused_by_the_system(error):
            raise _unreached(location, error) from error
        if _NOT_READ.search(str(error)):
            raise not_read(error, location.uri) from error
        if _is_left_over(location, error):
            raise TableNotFound(
                "there is no Delta table any more",
                where=location.uri,
                why="a commit was killed while the table was dropped, and one entry of it is left",
                fix="Create the table, or drop it once more.",
            ) from error
        raise CorruptTable(
            "the Delta log can't be read",
            where=location.uri,
            why=in_one_line(str(error)),
            fix="Look at _delta_log: a version, or a part of a checkpoint, is missing or damaged.",
        ) from error
    except OSError as error:
        raise _unreached(location, error) from error


def _is_left_over(location: Location, failed: Exception) -> bool:
    """Whether one entry of a dropped table makes the log fail. Raises `StorageError` where a file of the log can't be
    looked at: delta-rs leaves it out, and takes the rest for a damaged log."""
    try:
        if location.is_local:
            look_at_each(location.local(LOG))
        return lone_entry(location) is not None
    except OSError as error:
        raise _unreached(location, error) from failed


def _unreached(location: Location, error: Exception) -> StorageError:
    return StorageError(
        "the Delta log can't be reached",
        where=location.uri,
        why=in_one_line(str(error)),
        fix="Check permissions, the network and lake.delta.storage.*.",
    )


def _refuse_empty(location: Location, version: int) -> None:
    """A disk that lost power, or a copy, may leave a log entry without its content. delta-rs takes it for a commit of
    nothing, and so the table for one without the rows of that commit. All entries are looked at that it reads: those
    after the last checkpoint. An object store has each entry whole or not at all."""
    if not location.is_local:
        return
    for number in range(version, last_checkpoint(location.local(LOG), version), -1):
        entry = location.local(f"{LOG}/{number:020}.json")
        try:
            size = entry.stat().st_size
        except FileNotFoundError:
            return  # a checkpoint took its place
        if not size:
            raise _empty(entry, is_newest=number == version)


def _empty(entry: Path, *, is_newest: bool) -> CorruptTable:
    lost = "If there is none: delete it, and check which epochs are in the table."
    return CorruptTable(
        f"{'the newest' if is_newest else 'an'} entry of the Delta log is empty",
        where=str(entry),
        why="a power cut or a copy left it without its content",
        fix=f"Restore it from a backup.{' ' + lost if is_newest else ''}",
    )


def has_log(filesystem: pafs.FileSystem, root: str) -> bool:
    """Whether a table's log is there. delta-rs could tell, and would let no other thread of Python run meanwhile."""
    selector = pafs.FileSelector(f"{root}/{LOG}", allow_not_found=True)
    try:
        found = filesystem.get_file_info(selector)
    except FileNotFoundError:  # dropped while it was listed
        return False
    names = (info.base_name for info in found)
    return any(name.endswith((".json", ".parquet")) for name in names)


def refuse_dropped(location: Location) -> None:
    """Raise `Conflict` when the table is gone. Who writes below its folder makes it anew, and it is no table then."""
    if not has_log(location.filesystem, location.root):
        raise Conflict("the table was dropped meanwhile", where=location.uri)


def handle_of(location: Location, table: TableInfo) -> DeltaTable:
    """The handle that the table was described from; a fresh one, where the description came from another process."""
    handle: DeltaTable | None = table.handle
    return open_table(location) if handle is None else handle


def not_read(error: Exception, where: str) -> IncompatibleTable:
    """For a table that is healthy, and asks more of its readers than delta-rs can do."""
    feature = _FEATURE.search(str(error))
    if "Max catalog version" in str(error):
        return IncompatibleTable(
            "the table belongs to a catalog (its feature is catalogManaged)",
            where=where,
            why="commits go through that catalog, which delta-rs does not ask",
            fix=advice(["catalogManaged"]),
        )
    return IncompatibleTable(
        f"the table uses the reader feature {feature[1]!r}" if feature else "the table uses a newer protocol of Delta",
        where=where,
        why=in_one_line(str(error)),
        fix=advice([feature[1]] if feature else []),
    )


def _newest(location: Location) -> DeltaTable:
    """delta-rs leaves an entry of the log out where the storage could not tell of it, and takes the table for an older
    one. So a local log is asked for the next entry; one that is there may be a commit that came meanwhile."""
    handle = _opened(location, None)
    next_version = handle.version() + 1
    if not location.is_local or is_absent(entry := location.local(f"{LOG}/{next_version:020}.json")):
        return handle
    handle = _opened(location, None)
    if handle.version() < next_version and not is_absent(entry):
        raise StorageError(
            "delta-rs left out the newest entry of the Delta log",
            where=str(entry),
            why="the storage could not tell of it",
            fix="Look for errors of the disk or the mount, then run it again.",
        )
    return handle


def _opened(location: Location, version: int | None) -> DeltaTable:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    left = LISTINGS
    while True:
        left -= 1
        try:
            with panics_as_errors():
                return DeltaTable(location.uri, version=version, storage_options=location.storage_options)
        except TableNotFoundError as error:
            # It says so as well where it could not look, and where the table was created after it had looked.
            _refuse_missing(location, error)
            if not left:
                if version is not None:
                    raise  # nothing is left of one that was cleaned up: whoever asked tells it from damage
                raise TableError(
                    "delta-rs finds no table, and the Delta log is there",
                    where=location.uri,
                    why=in_one_line(str(error)),
                    fix="Run it again. If it stays so: look at _delta_log, and at what the storage says.",
                ) from error
        except DeltaError as error:
            if not log_changed(error) or not left:
                raise
            _refuse_missing(location, error)


def log_changed(error: Exception) -> bool:
    """Whether a log may have changed while delta-rs looked at it. Where it did not, the next look fails alike."""
    return _CHANGED.search(str(error)) is not None


def _refuse_missing(location: Location, error: Exception) -> None:
    """Raise `TableNotFound` from an ``error`` of delta-rs where there is no log; `OSError` where nobody can tell."""
    if not has_log(location.filesystem, location.root):
        raise TableNotFound(
            "there is no Delta table", where=location.uri, fix="Create it first, or check the warehouse and the name."
        ) from error


def transaction_version(handle: DeltaTable, location: Location, application: str) -> int | None:
    """The newest version that a writer gave its transactions under this id. Read from the log when it is asked for, so
    it may be gone by then: raises `TableError`."""
    from deltalake.exceptions import DeltaError

    try:
        return handle.transaction_version(application)
    except (DeltaError, OSError) as error:
        with suppress(OSError):  # where it can't be looked at, nobody knows more
            _refuse_missing(location, error)
        raise TableError(
            "the Delta log could not be read any more",
            where=location.uri,
            why=in_one_line(str(error)),
            fix="Run it again. If a log entry is gone: keep delta.logRetentionDuration longer than a round takes.",
        ) from error


def arrow_schema(handle: DeltaTable) -> pa.Schema:
    """The Arrow schema of a handle's snapshot, as files must have it; without metadata of Delta's."""
    schema = pa.schema(handle.schema().to_arrow())
    return pa.schema([field.remove_metadata() for field in schema])
