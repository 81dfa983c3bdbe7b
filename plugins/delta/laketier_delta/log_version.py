"""Which version of its log a table is at, told without delta-rs: by names and `os.stat`, or by one listing."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from laketier.kit.file_identity import file_identity
from laketier.kit.looks import is_absent, is_there, names_in
from laketier_delta.location import LOG, Location

_ENTRY = re.compile(r"(\d{20})\.json")
_LATER = re.compile(r"(\d{20})\..*checkpoint.*\.parquet")
_KNOWN = re.compile(r"(\d{1,19}):[0-9a-f.]+")
_IN_MEMORY = 10
_MOST_ENTRIES = 1000
_LARGEST_ENTRY = 1 << 20


def log_version(location: Location, known: str | None) -> str | None:
    """For `LakeCatalog.table_version`. A local log: the newest entry, with what tells it from another of that name. In
    an object store: its name and its content, as a table that was made anew may have an entry of the same name, size
    and second."""
    return _local(location, known) if location.is_local else _remote(location)


def log_bytes(location: Location, version: int) -> int | None:
    """For `LakeCatalog.handle_bytes`: delta-rs holds what the last checkpoint and the entries after it name."""
    if not location.is_local:
        return None
    folder = location.local(LOG)
    checkpoint = last_checkpoint(folder, version)
    if version - checkpoint > _MOST_ENTRIES:
        return None
    files = [_entry(folder, number) for number in range(checkpoint + 1, version + 1)]
    files += folder.glob(f"{checkpoint:020}.checkpoint*.parquet")
    return _IN_MEMORY * sum(map(_size, files))


def last_checkpoint(folder: Path, version: int) -> int:
    """The version of the checkpoint that a reader of ``version`` begins with, by what the log says of its last one; -1
    where that is a later one, or can't be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        found = int(json.loads((folder / "_last_checkpoint").read_bytes())["version"])
        return found if 0 <= found <= version else -1
    return -1


def leads_to(location: Location, version: int) -> bool:
    """Whether a local log has all entries of ``version``, by their names: from the first one, or behind a checkpoint.
    Then a version that can't be read is not one that was cleaned up. False in an object store, and where nobody can
    tell."""
    try:
        names = os.listdir(location.local(LOG)) if location.is_local else []
    except OSError:
        return False
    entries, checkpoints = _numbers(names, _ENTRY), _numbers(names, _LATER)
    start = max((each for each in checkpoints if each <= version), default=-1)
    return entries.issuperset(range(start + 1, version + 1)) and bool(names)


def look_at_each(folder: Path) -> None:
    """Look at each file of a local log. Raises `OSError` where the storage can't tell of one."""
    for name in names_in(folder):
        is_there(folder / name)


def _numbers(names: list[str], kind: re.Pattern[str]) -> set[int]:
    found = (kind.fullmatch(name) for name in names)
    return {int(match[1]) for match in found if match is not None}


def _local(location: Location, known: str | None) -> str | None:
    folder = location.local(LOG)
    if known is not None and (match := _KNOWN.fullmatch(known)) is not None:
        number = int(match[1])
        # Versions have no gaps: where this one is as it was and the next is not there, it is the newest.
        if _named(folder, number) == known and is_absent(_entry(folder, number + 1)):
            return known
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    newest = _newest(names)
    return None if newest is None else _named(folder, newest)


def _named(folder: Path, number: int) -> str | None:
    identity = file_identity(_entry(folder, number))
    return None if identity is None else f"{number}:{identity}"


def _remote(location: Location) -> str | None:
    try:
        filesystem, root = location.filesystem, f"{location.root}/{LOG}"
        found = filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True))
        newest = _newest([info.base_name for info in found])
        if newest is None:
            return None
        with filesystem.open_input_stream(f"{root}/{newest:020}.json") as stream:
            entry = stream.read(_LARGEST_ENTRY + 1)
    except OSError:
        return None
    # It names its files, which no two entries do, and when it was made.
    return f"{newest}:{hashlib.sha256(entry).hexdigest()}" if 0 < len(entry) <= _LARGEST_ENTRY else None


def _newest(names: list[str]) -> int | None:
    """The version of the newest entry; None where a checkpoint has taken its place, or there is none."""
    entries = _numbers(names, _ENTRY)
    if not entries:
        return None
    newest = max(entries)
    return newest if newest >= max(_numbers(names, _LATER), default=0) else None


def _size(file: Path) -> int:
    """Nothing of one that was cleaned up meanwhile."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _entry(folder: Path, number: int) -> Path:
    return folder / f"{number:020}.json"
