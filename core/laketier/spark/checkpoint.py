"""Reads a Spark checkpoint: the run and the content of an epoch.

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

from laketier.spark.offset_log import (
    NOTHING,
    NotUnderstood,
    file_source_batch,
    file_source_entries,
    has_settings,
    hides_names,
    in_order,
    is_counter,
    parse_offsets,
)
from laketier.spi import CorruptTable

_COMPACT = ".compact"
_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)\Z")
_RESTORE = "Restore the checkpoint from a copy, or continue from a new one with `laketier pipeline adopt`."
_DENIED = ("ACCESS_DENIED", "NETWORK_CONNECTION", "Could not resolve", "InvalidAccessKeyId", "no credentials")


@dataclass(frozen=True)
class Unreadable:
    """The checkpoint, or what an epoch of it read, can't be told from here. ``why`` is a clause, ``fix`` a sentence
    without its end."""

    why: str
    fix: str = 'Give the checkpoint as .option("checkpointLocation", …), where this driver can read it'


class Checkpoint:
    """The checkpoint folder of one streaming query, read on the driver. Holds no open file; not picklable."""

    def __init__(self, filesystem: fs.FileSystem, folder: str, run: str, location: str) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self.location = location
        """The path or URI under which it was found."""
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
        return cls(filesystem, folder, _run_id(text, location), location)

    def latest_epoch(self) -> int | None:
        """The newest epoch that Spark has planned; None for a checkpoint without epochs."""
        return max(self._numbers("offsets"), default=None)

    def is_micro_batch(self, epoch: int) -> bool:
        """Whether ``epoch``, which is there, has the settings of a micro-batch. Those of a continuous trigger have
        none."""
        return has_settings(_read(self._filesystem, f"{self._folder}/offsets/{epoch}"))

    def damage(self) -> str | None:
        """Which file that Spark reads as a query starts is gone or torn, as a clause. None where none is seen.

        A disk that lost power leaves files empty or cut, and a copy that was ended by hand lacks some. Spark says of
        these what its parser says. A layout that is not known here is no damage: a file is torn if the epoch before it
        can be read.
        """
        epochs = self._numbers("offsets")
        committed = max(self._numbers("commits"), default=None)
        if committed is not None and committed not in epochs:
            return f"commits/{committed} is there, and offsets/{committed} is not"
        if committed is not None and not _read(self._filesystem, f"{self._folder}/commits/{committed}"):
            return f"commits/{committed} is empty"
        is_known = False
        for epoch in sorted(epochs):
            if epoch > 0 and epoch - 1 not in epochs:
                continue
            try:
                self._content(epoch)
                is_known = True
            except CorruptTable as error:
                return error.what
            except NotUnderstood as error:
                return str(error) if is_known else None
        return None

    def _numbers(self, folder: str) -> set[int]:
        return {int(name) for name in self._names(folder) if _NUMBER.match(name)}

    def content(self, epoch: int) -> str | Unreadable:
        """A digest of what ``epoch`` read: the offsets of each source and, for file sources, the files.

        The version and the metadata line of ``offsets/N`` are left out, as they hold the batch's time and settings.
        Tables keep the digest, and each start of a query compares that of the last epoch: a release that made it in
        another way would have all queries refused.

        `Unreadable` for a layout that is not understood: it may mean other rows under the same text. Raises
        `CorruptTable` when the epoch is not in the checkpoint, or its files are no longer listed there.
        """
        try:
            return self._content(epoch)
        except NotUnderstood as error:
            return Unreadable(
                f"the checkpoint {self._folder} has a layout that this laketier does not know ({error})",
                "Use a laketier that knows this version of Spark or this source, and restore no checkpoint until then",
            )

    def _content(self, epoch: int) -> str:
        offsets = self._offsets(epoch)
        before = self._offsets(epoch - 1) if epoch > 0 else {}
        again = self._listed_again(offsets)
        digest = hashlib.sha256()
        for source in in_order(offsets):
            offset = offsets[source]
            digest.update(f"{source} {offset}\n".encode())
            last = file_source_batch(offset)
            if last is None:
                if offset != NOTHING:
                    self._require_no_log(source, offset)
                continue
            if source in again:
                continue
            earlier = file_source_batch(before[source]) if source in before else None
            for entry in self._source_entries(source, 0 if earlier is None else earlier + 1, last):
                digest.update(f"{entry}\n".encode())
        return f"sha256:{digest.hexdigest()}"

    def _offsets(self, epoch: int) -> dict[str, str]:
        name = f"offsets/{epoch}"
        try:
            text = _read(self._filesystem, f"{self._folder}/{name}")
        except FileNotFoundError as error:
            raise CorruptTable(f"{name} is not in the checkpoint", where=self._folder, fix=_RESTORE) from error
        offsets = parse_offsets(text, name)
        return self._by_name(offsets, name) if hides_names(text) else offsets

    def _by_name(self, offsets: dict[str, str], name: str) -> dict[str, str]:
        """The same offsets by the names of their folders, where no more than one source leaves no doubt."""
        folders = self._names("sources")
        if len(offsets) == 1 and len(folders) == 1:
            return dict(zip(folders, offsets.values(), strict=True))
        if not folders:
            return offsets
        raise NotUnderstood(
            f"{name} has {len(offsets)} offsets by the places of their sources, and the logs of {len(folders)} sources "
            f"lie below names"
        )

    def _require_no_log(self, source: str, offset: str) -> None:
        """An offset says which rows it stands for, unless it counts the entries of a log that only its source can read.
        Sources leave where they began as entry 0 (Kafka, rate)."""
        names = self._names(f"sources/{source}")
        if "rocksdb" in names or any(_log_number(name) not in (None, 0) for name in names):
            raise NotUnderstood(f"source {source} keeps a log of its own, and its offset {offset[:80]} may count that")
        if is_counter(offset) and not names:
            raise NotUnderstood(f"the offset of source {source} is a bare number, {offset}")

    def _listed_again(self, offsets: dict[str, str]) -> set[str]:
        """The file sources that are one that comes before. Spark lists a source for each place in which a query reads
        it, as a self-join does, keeps one log of it, and numbers the logs apart from the places. Which log is whose can
        be told where there is one alone. A source has one offset in all its places: so where there are more offsets
        than logs, a log is lost."""
        files = [source for source in in_order(offsets) if file_source_batch(offsets[source]) is not None]
        logs = self._names("sources")
        if not logs or set(files) <= set(logs) or len({offsets[source] for source in files}) > len(logs):
            return set()
        if len(logs) == 1 and len(set(offsets.values())) == 1:
            return set(files) - set(logs)
        raise NotUnderstood(
            f"the query reads sources in {len(offsets)} places, and {len(logs)} logs of sources lie there"
        )

    def _source_entries(self, source: str, first: int, last: int) -> list[str]:
        """The lines of the source's log for its batches ``first`` to ``last``; none where nothing new was read."""
        if first > last:
            return []
        folder = f"sources/{source}"
        names = self._names(folder)
        entries: list[str] = []
        batch = first
        while batch <= last:
            name = _log_file_with(names, batch)
            if name is None:
                raise CorruptTable(
                    f"{folder} does not list the files of batch {batch} any more", where=self._folder, fix=_RESTORE
                )
            end = min(last, int(name.removesuffix(_COMPACT)))
            text = _read(self._filesystem, f"{self._folder}/{folder}/{name}")
            entries += [
                line for number, line in file_source_entries(text, f"{folder}/{name}") if batch <= number <= end
            ]
            batch = end + 1
        return entries

    def _names(self, folder: str) -> list[str]:
        selector = fs.FileSelector(f"{self._folder}/{folder}", allow_not_found=True)
        return [info.base_name for info in self._filesystem.get_file_info(selector)]


def _log_number(name: str) -> int | None:
    number = name.removesuffix(_COMPACT)
    return int(number) if _NUMBER.match(number) else None


def _log_file_with(names: list[str], batch: int) -> str | None:
    """The log file that holds a batch: its own, or the first compaction that came after it."""
    if str(batch) in names:
        return str(batch)
    compactions = [_log_number(name) for name in names if name.endswith(_COMPACT)]
    later = [number for number in compactions if number is not None and number >= batch]
    return f"{min(later)}{_COMPACT}" if later else None


def _run_id(text: str, location: str) -> str:
    try:
        document: Any = json.loads(text)
        run = document["id"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTable("the checkpoint's `metadata` is not Spark's", where=location, why=str(error)) from error
    if not isinstance(run, str) or not run:
        raise CorruptTable("the checkpoint's `metadata` is not Spark's", where=location, why=f"its id is {run!r}")
    return run


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
    with filesystem.open_input_stream(path, compression=None) as stream:
        data = bytes(stream.read())
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptTable("a file of the checkpoint is not text", where=path, why=str(error), fix=_RESTORE) from error
