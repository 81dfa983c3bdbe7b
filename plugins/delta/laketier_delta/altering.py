"""Changes of a Delta table that are neither rows nor files: each one commit, made again when others were faster."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from laketier.kit.durable import fsync_directory, fsync_published
from laketier.spi import TableError
from laketier_delta.delta_log import DeltaLog
from laketier_delta.engine import open_table, panics_as_errors
from laketier_delta.location import LOG, Location

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_ATTEMPTS = 25


def alter(location: Location, change: Callable[[DeltaTable, CommitProperties], bool], what: str) -> None:
    """``change`` commits to the handle that it is given, or gives False when there is nothing to do. The version that
    it is given is made durable first: what is found there is answered for, or built upon, and its writer may have been
    killed before it synced it. Raises `TableError` naming ``what`` when other writers were faster each time."""
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError

    for attempt in range(_ATTEMPTS):
        handle = open_table(location)
        make_durable(location, handle.version())
        try:
            with panics_as_errors():
                if not change(handle, CommitProperties(max_commit_retries=0)):
                    return
        except CommitFailedError:
            time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 6)))
        else:
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


def make_durable(location: Location, version: int) -> None:
    """The log entry survives a power cut, where that is for this process to see to."""
    if location.is_local:
        with suppress(FileNotFoundError):  # a checkpoint has taken its place
            fsync_published(DeltaLog(location.filesystem, location.root).path(version))
        fsync_directory(location.local(LOG))


def _has_required(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return False
    inner = [kind.get(name) for name in ("elementType", "keyType", "valueType")]
    fields = kind.get("fields", ())
    return any(not field["nullable"] or _has_required(field["type"]) for field in fields) or any(
        map(_has_required, inner)
    )
