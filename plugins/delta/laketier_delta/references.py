"""Finds the files of laketier that the Delta log still names: in some version that can still be read, or as a
tombstone.

A file is known by its name alone, and by that part of it which is not the users' choice. Names of laketier's files are
unguessable, while their paths have many spellings:
percent-encoded, absolute (after a clone), through a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from laketier.spi import CorruptTable, IncompatibleTable
from laketier_delta.layout import core_of, cores_in
from laketier_delta.location import LOG
from laketier_delta.table_features import advice

REQUESTS = 16
"""How many files are read or deleted at a time."""

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"\d{20}\.\d{20}\.compacted\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_OTHER_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\..+")
_PATHS = ("add", "remove")


def unreferenced(filesystem: pafs.FileSystem, root: str, names: Iterable[str]) -> set[str]:
    """Those of ``names`` that the log of the table at ``root`` does not name.

    Reads what makes up the newest version; only where that leaves some open, the rest: each entry once, and as few
    checkpoints as possible. Raises `CorruptTable` when the newest version can't be put together, and
    `IncompatibleTable` for checkpoints of version 2.
    """
    cores = _cores(names)
    left = set(cores)
    read: set[str] = set()
    with ThreadPoolExecutor(REQUESTS) as pool:
        while left:
            log = LogFiles.of(filesystem, f"{root}/{LOG}")
            missing = False
            for paths in (log.newest(), log.all()):
                new = [path for path in paths if path not in read] if left else []
                for path, found in zip(new, pool.map(lambda path: _names(filesystem, path), new), strict=True):
                    if found is None:
                        missing = True
                    else:
                        read.add(path)
                        left -= found
            if not missing:
                break
            # Somebody cleans the log up. Other files take the place of those: look again.
    return {cores[core] for core in left}


def live(filesystem: pafs.FileSystem, root: str, names: Iterable[str]) -> set[str]:
    """Those of ``names`` that what makes up the newest version names: its files, and what it removed of late. Reads
    the newest checkpoint and the entries after it. Raises as `unreferenced`."""
    cores = _cores(names)
    while True:
        log = LogFiles.of(filesystem, f"{root}/{LOG}")
        log.check_whole()
        with ThreadPoolExecutor(REQUESTS) as pool:
            found = list(pool.map(lambda path: _names(filesystem, path), log.newest()))
        if None not in found:
            return {cores[core] for cores_of in found for core in cores_of or () if core in cores}


def named_since(filesystem: pafs.FileSystem, root: str, names: Iterable[str], versions: range) -> set[str]:
    """Those of ``names`` that entries of ``versions`` name. Reads each of them, and where some were cleaned up, what
    makes up the newest version, which keeps what was removed of late. Raises as `live`."""
    cores = _cores(names)
    paths = (f"{root}/{LOG}/{version:020}.json" for version in versions)
    with ThreadPoolExecutor(REQUESTS) as pool:
        found = list(pool.map(lambda path: _names(filesystem, path), paths))
    named = {cores[core] for cores_of in found for core in cores_of or () if core in cores}
    return named | live(filesystem, root, cores.values()) if None in found else named


@dataclass(frozen=True)
class LogFiles:
    """The paths of a log's entries and complete checkpoints, by version."""

    where: str
    commits: dict[int, str]
    compacted: list[str]
    checkpoints: dict[int, list[str]]

    @classmethod
    def of(cls, filesystem: pafs.FileSystem, where: str) -> LogFiles:
        log = cls(where, {}, [], {})
        parts: dict[tuple[int, int], list[str]] = {}
        for info in filesystem.get_file_info(pafs.FileSelector(where)):
            name = info.base_name
            if match := _COMMIT.fullmatch(name):
                log.commits[int(match[1])] = info.path
            elif _COMPACTED.fullmatch(name):
                log.compacted.append(info.path)
            elif match := _CHECKPOINT.fullmatch(name):
                parts.setdefault((int(match[1]), int(match[2] or 1)), []).append(info.path)
            elif _OTHER_CHECKPOINT.fullmatch(name):
                raise _version_two(info.path)
        log.checkpoints.update({version: paths for (version, count), paths in parts.items() if len(paths) == count})
        return log

    def newest(self) -> list[str]:
        """The log files of the newest version, from the oldest."""
        base = max(self.checkpoints, default=-1)
        later = sorted(version for version in self.commits if version > base)
        return [*self.checkpoints.get(base, ()), *(self.commits[version] for version in later)]

    def all(self) -> list[str]:
        """What together names each file that a readable version, or a tombstone in one, names: all entries, and a
        checkpoint only where no entries lead up to it."""
        needed = [*self.commits.values(), *self.compacted]
        return [*needed, *self.check_whole()]

    def check_whole(self) -> list[str]:
        """The checkpoints up to which no entries lead. Raises `CorruptTable` where entries of the newest version are
        missing."""
        needed: list[str] = []
        known = -1  # up to this version, of those that have been passed, nothing is missing
        versions = sorted(self.commits.keys() | self.checkpoints.keys())
        for version in versions:
            if version in self.commits and known == version - 1:
                known = version
            elif version in self.checkpoints:
                needed += self.checkpoints[version]
                known = version
        if not versions or known != versions[-1]:
            raise CorruptTable(
                "the log does not say which files the newest version has, so none is taken for an orphan",
                where=self.where,
                why=f"entry {known + 1} is missing, and no complete checkpoint follows it",
                fix="Restore the missing files of _delta_log.",
            )
        return needed


def _cores(names: Iterable[str]) -> dict[str, str]:
    """Names by what nobody can guess of them."""
    return {core: name for name in names if (core := core_of(name)) is not None}


def _names(filesystem: pafs.FileSystem, path: str) -> set[str] | None:
    """The `core_of` all names in a file of the log; None when it is gone. Raises `CorruptTable`."""
    try:
        if not path.endswith(".parquet"):
            with filesystem.open_input_stream(path) as stream:
                return cores_in(stream.read())
        with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as checkpoint:
            return _names_in_checkpoint(checkpoint, path)
    except FileNotFoundError:
        return None
    except pa.ArrowInvalid as error:
        raise CorruptTable(f"{path} is not a checkpoint", why=str(error)) from error


def _names_in_checkpoint(checkpoint: pq.ParquetFile, path: str) -> set[str]:
    found: set[str] = set()
    present = [name for name in (*_PATHS, "sidecar") if name in checkpoint.schema_arrow.names]
    for batch in checkpoint.iter_batches(columns=[f"{name}.path" for name in present]):
        for name in present:
            paths = batch.column(name).drop_null().field("path").to_pylist()
            if name == "sidecar" and paths:
                raise _version_two(path)
            found |= cores_in("\n".join(paths).encode())
    return found


def _version_two(path: str) -> IncompatibleTable:
    return IncompatibleTable(
        "the log has a checkpoint of version 2",
        where=path,
        why="the delta plugin of laketier does not read what it refers to, so it can't tell which files are needed",
        fix=advice(["v2Checkpoint"]),
    )
