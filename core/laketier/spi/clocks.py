"""Whose clock says what time it is: this host's, or the storage's.

A host's clock may be wrong by any amount, and each host has another one. So nothing that deletes, refuses or expires
goes by it alone: ages are told by the storage, which dated the files. What a host's clock may still do is name things
and tell people when something was.
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
    """Ms since the epoch, UTC, by the clock of this host. The one place where laketier and its plugins read it."""
    return time.time_ns() // 1_000_000 + _shift


@contextmanager
def shifted(milliseconds: int) -> Iterator[None]:
    """Within the block, in all threads of this process, `host_time` is wrong by so much. For tests."""
    global _shift
    before, _shift = _shift, milliseconds
    try:
        yield
    finally:
        _shift = before


def time_of_storage(filesystem: pafs.FileSystem, root: str) -> int:
    """What time it is now by the clock that dates the files below ``root``, a folder of ``filesystem`` that exists: ms
    since the epoch, cut off where the storage cuts off.

    It writes an empty file and looks at its date. On local disks the file never has a name; elsewhere it has a fixed
    one, and is deleted: what a killed process leaves is one empty file, and no more. Raises `OSError`, and
    `StorageError` when other processes take the file away each time.
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
