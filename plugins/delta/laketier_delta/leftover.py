"""What a commit leaves that its table was dropped under.

delta-rs makes the folders of what it writes anew, so such an entry is the only one of its log, and its writer takes it
back. A writer that is killed before that leaves it: a log that nobody can read, where no table could be created.
"""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs

from laketier.kit.confine import RECORDS
from laketier_delta.location import LOG, Location

_ENTRY = re.compile(rf"{LOG}/(\d{{20}})\.json")
_UNFINISHED = re.compile(rf"{LOG}/\d{{20}}\.json(#\d+|\.left-\w+)")
"""Of delta-rs, which writes an entry under another name first; and of `take_back`."""
_OWN = f"{RECORDS}/"
"""The records of pipelines. Without a table they are nothing."""


@dataclass(frozen=True)
class LoneEntry:
    """The entry, as it was seen."""

    path: Path
    inode: tuple[int, int]


def lone_entry(location: Location) -> LoneEntry | None:
    """The entry that is left of a dropped table; None unless it is the only one of its log, is not the first version,
    and the folder holds no data file, so that nothing is lost with it. On a disk only. Driver. Raises ``OSError`` for a
    folder that can't be listed."""
    if not location.is_local:
        return None
    try:
        found = location.filesystem.get_file_info(pafs.FileSelector(location.root, recursive=True))
    except FileNotFoundError:
        return None
    files = [info.path.removeprefix(f"{location.root}/") for info in found if info.type is not pafs.FileType.Directory]
    rest = [name for name in files if not name.startswith(_OWN) and not _UNFINISHED.fullmatch(name)]
    number = _ENTRY.fullmatch(rest[0]) if len(rest) == 1 else None
    if number is None or int(number[1]) == 0:
        return None
    path = location.local(rest[0])
    with suppress(FileNotFoundError):
        status = path.lstat()
        return LoneEntry(path, (status.st_ino, status.st_mtime_ns))
    return None


def is_of_clock_alone(location: Location) -> bool:
    """Whether the folder of records holds no more than the file whose date tells an object store's time: who asked for
    it was killed, or was late. The object that stands for an empty folder stays."""
    selector = pafs.FileSelector(f"{location.root}/{RECORDS}", allow_not_found=True, recursive=True)
    found = location.filesystem.get_file_info(selector)
    return {info.path for info in found} <= {f"{location.root}/{RECORDS}/clock"}


def take_back(entry: LoneEntry) -> None:
    """Remove it. Another process may have done that, and made a table since, which has an entry of that name: it is put
    back. Driver."""
    aside = entry.path.with_name(f"{entry.path.name}.left-{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        entry.path.rename(aside)
        status = aside.lstat()
        if (status.st_ino, status.st_mtime_ns) != entry.inode:
            os.link(aside, entry.path)
        aside.unlink()
