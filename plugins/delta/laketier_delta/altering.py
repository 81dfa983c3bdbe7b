"""Changes of a Delta table that are neither rows nor files: each one commit, made again when others were faster."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from laketier.kit.durable import fsync_directory, fsync_file, fsync_published
from laketier.kit.file_identity import file_identity
from laketier.kit.library_errors import in_one_line
from laketier.spi import Conflict, CorruptTable, TableError, TableNotFound, new_attempt_id
from laketier_delta.delta_log import PUBLISH, DeltaLog
from laketier_delta.engine import has_log, open_table, panics_as_errors
from laketier_delta.location import LOG, Location

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_ATTEMPTS = 25
_PAUSE, _DOUBLED = 0.02, 6
"""The seconds that the first attempt waits at most, and how many of those after it may wait twice as long."""


def alter(location: Location, change: Callable[[DeltaTable, CommitProperties], bool], what: str) -> None:
    """``change`` commits to the handle that it is given, or gives False when there is nothing to do. The version that
    it is given is made durable first: what is found there is answered for, or built upon, and its writer may have been
    killed before it synced it. Raises `TableNotFound` for a table that is dropped, `TableError` naming ``what`` when
    other writers were faster each time or delta-rs failed, and `Conflict` where another table is in its place."""
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError, DeltaError

    for attempt in range(_ATTEMPTS):
        handle = open_table(location)
        version, table_id, own = handle.version(), str(handle.metadata().id), new_attempt_id()
        entry = entry_identity(location, version)
        make_durable(location, version)
        try:
            with panics_as_errors():
                if not change(handle, CommitProperties(custom_metadata={PUBLISH: own}, max_commit_retries=0)):
                    return
        except CommitFailedError:
            time.sleep(random.uniform(0, _PAUSE * 2 ** min(attempt, _DOUBLED)))
        except DeltaError as error:
            # It looks at what it committed: a table that was dropped under it has no such version, or that one alone.
            _refuse_elsewhere(location, version, entry, table_id, own, error)
            raise TableError(what, where=location.uri, why=in_one_line(str(error))) from error
        else:
            if version != handle.version():
                _refuse_elsewhere(location, version, entry, table_id, own)
            make_durable(location, handle.version())
            return
    raise TableError(
        f"{what} in {_ATTEMPTS} attempts",
        where=location.uri,
        why="other writers committed each time",
        fix="Try again when fewer commits are made to the table.",
    )


def lacks_invariants(handle: DeltaTable) -> bool:
    """Whether the table's features leave out the one that its not-null columns are.

    Where a protocol names features (writer version 7), it must name each that the metadata uses. delta-rs names
    ``timestampNtz`` and not ``invariants``, and delta-spark then refuses the whole table."""
    named = handle.protocol().writer_features
    return named is not None and "invariants" not in named and _has_required(json.loads(handle.schema().to_json()))


def name_invariants(location: Location) -> None:
    """Add it to them."""

    def change(handle: DeltaTable, properties: CommitProperties) -> bool:
        from deltalake import TableFeatures

        if not lacks_invariants(handle):
            return False
        handle.alter.add_feature(TableFeatures.Invariants, commit_properties=properties)
        return True

    alter(location, change, "the feature of its not-null columns could not be named")


def entry_identity(location: Location, version: int) -> str | None:
    """The identity of a version's log entry: a table that was dropped and made anew has other entries of the same
    versions. In an object store, where files have none, a digest of all of it. None where it was cleaned up."""
    if location.is_local:
        return file_identity(location.local(f"{LOG}/{version:020}.json"))
    try:
        with location.filesystem.open_input_stream(DeltaLog(location.filesystem, location.root).path(version)) as entry:
            return hashlib.sha256(entry.read()).hexdigest()
    except FileNotFoundError:
        return None


def is_onto(location: Location, version: int, entry: str | None, table_id: str) -> bool:
    """Whether the table ``table_id`` is there still whose ``version`` had this ``entry``: a commit onto it goes well
    where it was dropped, or made anew. Raises `TableError`."""
    found = entry_identity(location, version)
    if found is not None and found == entry:
        return True
    try:
        # Others may have cleaned the entry up, with the checkpoint of it: then a later one has all that it had. Or they
        # wrote its bytes once more, as a sync of it failed (`fsync_published`): then it only looks like another one. A
        # later version does not tell, as the commit itself may have named its table in it.
        return str(open_table(location, None if found is None else version).metadata().id) == table_id
    except (TableNotFound, CorruptTable):
        return False


def _refuse_elsewhere(
    location: Location, version: int, entry: str | None, table_id: str, own: str, cause: Exception | None = None
) -> None:
    """Take back the commit ``own`` onto ``version``, if that is there no more: the table was dropped after its handle
    was opened, and delta-rs makes the folders of what it writes anew, or writes into another table. Raises
    `TableNotFound` and `Conflict` then."""
    if is_onto(location, version, entry, table_id):
        return
    take_back(location, version + 1, own)
    if not has_log(location.filesystem, location.root):
        raise TableNotFound(
            "the table was dropped meanwhile", where=location.uri, why=None if cause is None else str(cause).strip()
        ) from cause
    raise Conflict("the table was dropped and made anew meanwhile", where=location.uri) from cause


def take_back(location: Location, version: int, own: str) -> None:
    """Delete the entry of ``version``, if it is that of the commit ``own``."""
    entries = DeltaLog(location.filesystem, location.root)
    with suppress(FileNotFoundError, CorruptTable):
        if (entries.commit_info(version) or {}).get(PUBLISH) == own:
            location.filesystem.delete_file(entries.path(version))


def make_durable(location: Location, version: int) -> None:
    """The log entry survives a power cut, where that is for this process to see to, and so does a checkpoint of it:
    delta-rs syncs none, and can't read a log whose hint names a checkpoint that has lost its bytes."""
    if location.is_local:
        folder = location.local(LOG)
        with suppress(FileNotFoundError):  # a checkpoint has taken its place
            fsync_published(DeltaLog(location.filesystem, location.root).path(version))
        with suppress(FileNotFoundError):  # there is none of most versions
            fsync_file(folder / f"{version:020}.checkpoint.parquet")
            fsync_file(folder / "_last_checkpoint")
        fsync_directory(folder)


def _has_required(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return False
    inner = [kind.get(name) for name in ("elementType", "keyType", "valueType")]
    fields = kind.get("fields", ())
    return any(not field["nullable"] or _has_required(field["type"]) for field in fields) or any(
        map(_has_required, inner)
    )
