"""Durability on a local file system: the order in which data must be on disk.

Order for a new file that others may rely on: write, fsync the file, publish its name, fsync the directory.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

from laketier.kit.looks import is_there


def fsync_file(path: str | os.PathLike[str]) -> None:
    """Flush a file's data and length to the device."""
    _fsync(path, os.O_RDONLY)


def fsync_published(path: str | os.PathLike[str]) -> None:
    """Flush a small file that others may rely on already. Where that fails, its bytes are written again before the next
    try: after an error the kernel takes them for written, and another sync alone would find nothing to do. Its name is
    flushed by `fsync_directory` of its folder."""
    try:
        fsync_file(path)
    except FileNotFoundError:
        raise
    except OSError:
        with open(path, "r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def fsync_directory(path: str | os.PathLike[str]) -> None:
    """Flush a directory: the names created, renamed or removed in it."""
    _fsync(path, os.O_RDONLY | os.O_DIRECTORY)


def _fsync(path: str | os.PathLike[str], flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: Path) -> None:
    """Create a directory and its missing parents, each durable in its own parent. Idempotent. The last existing
    directory may be new: its maker may be about to sync its parent, or was killed before. So it is synced too.
    Directories above it were synced before it was made."""
    missing = []
    here = path
    while not is_there(here):
        missing.append(here)
        here = here.parent
    with suppress(PermissionError):  # the parent is somebody else's, and so is what was made in it
        fsync_directory(here.parent)
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        fsync_directory(directory.parent)


def create_exclusively(path: Path, data: bytes) -> None:
    """Publish a complete, synced file under a new name: write and fsync a temporary file beside it, then ``link``. The
    name is durable once `fsync_directory` has flushed its folder. Raises `FileExistsError` when the name exists. One
    winner under any race."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
        fsync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
