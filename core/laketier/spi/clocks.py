"""The clock of this host, and the clock of the storage.

A host's clock may be wrong by any amount, and hosts have different clocks. So nothing that deletes, refuses or expires
relies on it alone: the storage, which dated the files, tells their age. A host's clock may only name things and tell
people when something was.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow.fs as pafs

from laketier.spi.errors import StorageError

_PROBE = "_laketier/clock"
_TRIES = 3

_shift = 0


def host_time() -> int:
    """The time by the clock of this host, in ms since the epoch, UTC. No other place in laketier and its plugins reads
    that clock."""
    return time.time_ns() // 1_000_000 + _shift


@contextmanager
def shifted(milliseconds: int) -> Iterator[None]:
    """Shift `host_time` within the block, in all threads of this process. For tests.

    Args:
        milliseconds: The shift.
    """
    global _shift
    before, _shift = _shift, milliseconds
    try:
        yield
    finally:
        _shift = before


def time_of_storage(filesystem: pafs.FileSystem, root: str) -> int:
    """Ask for the time by the clock that dates the files of a folder. It writes an empty file and reads its date. On
    local disks the file has no name. Elsewhere it has a fixed name and is deleted, so a killed process leaves one empty
    file at most.

    Args:
        filesystem: The file system.
        root: An existing folder in it.

    Returns:
        Milliseconds since the epoch, as exact as the storage.

    Raises:
        OSError: The file system does not answer.
        StorageError: Other processes deleted the file each time.
    """
    if isinstance(filesystem, pafs.LocalFileSystem):
        with tempfile.TemporaryFile(dir=root) as probe:
            return os.fstat(probe.fileno()).st_mtime_ns // 1_000_000
    path = f"{root.rstrip('/')}/{_PROBE}"
    for _ in range(_TRIES):
        with filesystem.open_output_stream(path):
            pass
        found = filesystem.get_file_info(path)
        with suppress(FileNotFoundError):  # another process asks for the time as well
            filesystem.delete_file(path)
        if found.type is pafs.FileType.File and found.mtime_ns is not None:
            return int(found.mtime_ns) // 1_000_000
    raise StorageError(
        "the storage could not be asked for the time",
        where=path,
        why="the file that was written to see its date was not there",
        fix="Run it again.",
    )
