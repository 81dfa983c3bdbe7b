"""Tells by `os.stat` whether a file is the one that it was."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

_SECOND = 1_000_000_000
_LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is read to tell it from another of the same second."""


def file_identity(path: Path | str) -> str | None:
    """Names a local file and its content, on this host: device, inode, size, and when it was changed. A file that was
    written, replaced or put back has another name, also where its size and date were kept. None where there is none, or
    where it can't be looked at.

    Some disks (ext3, many of FUSE, servers of files) date to the second, and give a new file the inode of one that was
    just deleted. There the content is read as well; of a file above 16 MiB the name is None."""
    try:
        found = os.stat(path)
        name = ".".join(
            f"{n:x}" for n in (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        )
        if found.st_mtime_ns % _SECOND or found.st_ctime_ns % _SECOND or not stat.S_ISREG(found.st_mode):
            return name
        return None if found.st_size > _LARGEST else f"{name}.{_digest(path)}"
    except (OSError, ValueError):
        return None


def _digest(path: Path | str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(_LARGEST)).hexdigest()
