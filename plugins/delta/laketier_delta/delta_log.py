"""The Delta log as far as laketier reads it itself: who made a commit, and whether a table was reset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs

from laketier.spi import CorruptTable

COMMIT_ID = "laketier.commit"
PIPELINE = "laketier.pipeline"
EPOCH = "laketier.epoch"
PUBLISH = "laketier.publish"
HORIZON = "laketier.horizon"
"""Keys in ``commitInfo``. A commit id is a round's, and `PUBLISH` is one attempt's. `HORIZON`: see `transactions`."""
_PART = 1 << 20


@dataclass(frozen=True)
class Entry:
    """What one entry says: its ``commitInfo``, {} where there is none, and the ``versions`` of its transactions."""

    info: dict[str, Any]
    versions: dict[str, int]


@dataclass(frozen=True)
class DeltaLog:
    """Entries of one table's log, by version. ``root`` is the table's path on ``filesystem``."""

    filesystem: pafs.FileSystem
    root: str

    def commit_info(self, version: int) -> dict[str, Any] | None:
        """The ``commitInfo`` of a version: {} when its writer left none, None when the entry is not there (not yet,
        or cleaned up). Raises `CorruptTable`."""
        entry = self.entry(version)
        return None if entry is None else entry.info

    def entry(self, version: int) -> Entry | None:
        """What is in the entry of a version; None when it is not there. Raises `CorruptTable`."""
        try:
            with self.filesystem.open_input_stream(self.path(version)) as stream:
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return None
        info: dict[str, Any] | None = None
        versions: dict[str, int] = {}
        try:
            for line in lines:
                if b'"commitInfo"' not in line and b'"txn"' not in line:
                    continue
                action = json.loads(line)
                if "commitInfo" in action and info is None:
                    info = _object(action["commitInfo"])
                elif "txn" in action:
                    versions[action["txn"]["appId"]] = int(action["txn"]["version"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise CorruptTable(f"{self.path(version)} is not a log entry", why=str(error)) from error
        return Entry(info or {}, versions)

    def digest(self, version: int) -> str | None:
        """The SHA-256 of a version's entry; None when it is not there."""
        found = hashlib.sha256()
        try:
            with self.filesystem.open_input_stream(self.path(version)) as stream:
                while part := stream.read(_PART):
                    found.update(part)
        except FileNotFoundError:
            return None
        return found.hexdigest()

    def path(self, version: int) -> str:
        """The entry's path on the file system."""
        return f"{self.root}/_delta_log/{version:020}.json"

    def newest_first(self, upto: int, after: int = -1) -> Iterator[tuple[int, dict[str, Any]]]:
        """(version, its `commit_info`) of the versions in ``(after, upto]``. The first that is not there ends them: all
        before it were cleaned up, too, and there may be any number of them. Raises `CorruptTable`."""
        for version in range(upto, after, -1):
            info = self.commit_info(version)
            if info is None:
                return
            yield version, info

    def last_reset(self, after: int, upto: int) -> int | None:
        """The newest version in ``(after, upto]`` by which somebody else took rows back that ``after`` had: a RESTORE
        to a version before it, a table that was replaced or cloned onto, an overwrite of all rows, also by a stream of
        results in full. As far as the entries are still there."""
        found = self.newest_first(upto, after)
        return next((version for version, info in found if COMMIT_ID not in info and _resets(info, after)), None)

    def find_commit(self, commit_id: str, after: int, upto: int) -> bool | None:
        """Whether a version in ``(after, upto]`` was made by ``commit_id``; None when an entry that could say so is
        gone. A table that was dropped and made anew may be at a version before ``after``: False."""
        missing = upto - after
        for _, info in self.newest_first(upto, after):
            if info.get(COMMIT_ID) == commit_id:
                return True
            missing -= 1
        return None if missing > 0 else False


def _resets(info: dict[str, Any], after: int) -> bool:
    operation = str(info.get("operation", "")).upper()
    if operation == "RESTORE":
        target = _target(info)
        return target is None or target < after
    if "REPLACE" in operation:
        return True
    parameters = _parameters(info)
    in_full = operation == "STREAMING UPDATE" and str(parameters.get("outputMode", "")).lower() == "complete"
    if operation == "CLONE" or in_full:  # a clone onto a table that is there takes all its rows away
        return True
    overwrites = operation == "WRITE" and str(parameters.get("mode", "")).lower() == "overwrite"
    return overwrites and parameters.get("predicate") in (None, "", "[]")


def _target(info: dict[str, Any]) -> int | None:
    """The version that a RESTORE went back to; None when it names a time, or nothing."""
    try:
        return int(_parameters(info)["version"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def timestamp_of(info: Mapping[str, Any]) -> int | None:
    """When a version was committed, in ms since the epoch; None when its writer left no such number. Where a table has
    in-commit timestamps these count, as the protocol says: they never go back, and a writer's clock may."""
    told = (info.get(name) for name in ("inCommitTimestamp", "timestamp"))
    return next((moment for moment in told if type(moment) is int), None)


def _parameters(info: Mapping[str, Any]) -> dict[str, Any]:
    """The ``operationParameters``, which any writer spells as it likes: {} where they are no object."""
    found = info.get("operationParameters")
    return found if isinstance(found, dict) else {}


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"commitInfo is {value!r}")
    return value
