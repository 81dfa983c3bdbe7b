"""What a Spark checkpoint says about an epoch: whose it is, and what it read.

A batch id alone does not identify rows: a restored checkpoint takes the same id again with other files, and its
``offsets/N`` is then the same text, since a file source's offset is only a counter. What the counter stands for is in
the source's own log below ``sources/``. This module reads both, and nothing of Spark.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from laketier.spi import CorruptTable

_COMPACT = ".compact"
_FILE_SOURCE_OFFSET = re.compile(r'\{"logOffset":(?P<log>-?\d+)\}\Z')
_ENTRY_BATCH = re.compile(r'"batchId":(?P<batch>\d+)')
_RESTORE = "Restore the checkpoint from a copy, or continue from a new one with `laketier pipeline adopt`."
_DENIED = ("ACCESS_DENIED", "NETWORK_CONNECTION", "Could not resolve", "InvalidAccessKeyId", "no credentials")


@dataclass(frozen=True)
class Unreadable:
    """The checkpoint can't be read from here; ``why`` is a clause."""

    why: str


class Checkpoint:
    """The checkpoint folder of one streaming query, read on the driver. Holds no open file; not picklable."""

    def __init__(self, filesystem: fs.FileSystem, folder: str, run: str) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self.run = run
        """The query's id: the same as long as the checkpoint lives."""

    @classmethod
    def open(cls, location: str) -> Checkpoint | Unreadable:
        """Find the checkpoint at a path or URI.

        `Unreadable` where this process has no way to it (a file system that pyarrow does not know, or another one
        than Spark's). An I/O error on the way is raised: it may be gone the next time, and then the same epoch
        would get another token.
        """
        try:
            filesystem, folder = _filesystem_of(location)
        except (ValueError, OSError, NotImplementedError) as error:
            return Unreadable(f"pyarrow has no file system for {urlsplit(location).scheme}:// here ({error})")
        try:
            text = _read(filesystem, f"{folder}/metadata")
        except FileNotFoundError:
            return Unreadable(f"{location} holds no `metadata` as seen from this process")
        except OSError as error:
            if any(sign in str(error) for sign in _DENIED):
                return Unreadable(f"this process may not read {location}")
            raise
        return cls(filesystem, folder, _run_id(text, location))

    def latest_epoch(self) -> int | None:
        """The newest epoch that Spark has planned; None for a checkpoint without epochs."""
        epochs = [int(name) for name in self._names("offsets") if name.isdigit()]
        return max(epochs, default=None)

    def content(self, epoch: int) -> str:
        """A digest of what ``epoch`` read: the offsets of each source and, for file sources, the files.

        The version and the metadata line of ``offsets/N`` are left out, as they hold the batch's time and settings.
        Raises `CorruptTable` when the epoch is not in the checkpoint, or its files are no longer listed there.
        """
        offsets = self._offsets(epoch)
        before = self._offsets(epoch - 1) if epoch > 0 else []
        digest = hashlib.sha256()
        for index, offset in enumerate(offsets):
            digest.update(f"{index} {offset}\n".encode())
            match = _FILE_SOURCE_OFFSET.match(offset)
            if match is None:
                continue
            earlier = _FILE_SOURCE_OFFSET.match(before[index]) if index < len(before) else None
            first = int(earlier["log"]) + 1 if earlier else 0
            for entry in self._source_entries(index, first, int(match["log"])):
                digest.update(f"{entry}\n".encode())
        return f"sha256:{digest.hexdigest()}"

    def _offsets(self, epoch: int) -> list[str]:
        try:
            lines = _read(self._filesystem, f"{self._folder}/offsets/{epoch}").splitlines()
        except FileNotFoundError as error:
            raise CorruptTable(f"offsets/{epoch} is not in the checkpoint", where=self._folder, fix=_RESTORE) from error
        return [line.strip() for line in lines[2:]]

    def _source_entries(self, source: int, first: int, last: int) -> list[str]:
        """The lines of the source's log for its batches ``first`` to ``last``; none where nothing new was read."""
        if first > last:
            return []
        folder = f"sources/{source}"
        names = self._names(folder)
        if not names:
            return []
        entries: list[str] = []
        batch = first
        while batch <= last:
            name = _log_file_with(names, batch)
            if name is None:
                raise CorruptTable(
                    f"{folder} does not list the files of batch {batch} any more", where=self._folder, fix=_RESTORE
                )
            end = min(last, int(name.removesuffix(_COMPACT)))
            for line in _read(self._filesystem, f"{self._folder}/{folder}/{name}").splitlines()[1:]:
                found = _ENTRY_BATCH.search(line)
                if found and batch <= int(found["batch"]) <= end:
                    entries.append(line.strip())
            batch = end + 1
        return entries

    def _names(self, folder: str) -> list[str]:
        selector = fs.FileSelector(f"{self._folder}/{folder}", allow_not_found=True)
        return [info.base_name for info in self._filesystem.get_file_info(selector)]


def _log_file_with(names: list[str], batch: int) -> str | None:
    """The log file that holds a batch: its own, or the first compaction that came after it."""
    if str(batch) in names:
        return str(batch)
    compactions = [int(name.removesuffix(_COMPACT)) for name in names if name.endswith(_COMPACT)]
    later = [number for number in compactions if number >= batch]
    return f"{min(later)}{_COMPACT}" if later else None


def _run_id(text: str, location: str) -> str:
    try:
        document: Any = json.loads(text)
        run = document["id"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable("the checkpoint's `metadata` is not Spark's", where=location, why=str(error)) from error
    return str(run)


def _filesystem_of(location: str) -> tuple[fs.FileSystem, str]:
    scheme = urlsplit(location).scheme
    if len(scheme) <= 1:  # a plain path, or a Windows drive
        return fs.LocalFileSystem(), location.rstrip("/")
    if scheme in ("s3a", "s3n"):
        location = "s3" + location[len(scheme) :]
    if scheme == "file" and not location.startswith("file:///"):
        location = "file://" + location[len("file:") :]
    filesystem, folder = fs.FileSystem.from_uri(location)
    return filesystem, folder.rstrip("/")


def _read(filesystem: fs.FileSystem, path: str) -> str:
    with filesystem.open_input_stream(path) as stream:
        return bytes(stream.read()).decode("utf-8")
