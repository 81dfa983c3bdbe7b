"""Tells by `os.stat` whether a file is the one that it was."""

from __future__ import annotations

import os
from pathlib import Path


def file_identity(path: Path | str) -> str | None:
    """Names a local file and its content, on this host: device, inode, size, and when it was changed. A file that was
    written, replaced or put back has another name, also where its size and date were kept. None where there is none, or
    where it can't be looked at."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return ".".join(f"{n:x}" for n in (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
