"""Tells by `os.stat` whether a file is the one that it was."""

from __future__ import annotations

import os
from pathlib import Path


def is_absent(path: Path | str) -> bool:
    """Whether nothing has this name, not even a link. Where it can't be looked at, nobody knows, and the answer is
    False; `os.path.lexists` would take each error for an absence."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def is_there(path: Path | str) -> bool:
    """Whether a file or folder has this name, also through links. Raises `OSError` where it can't be looked at: from
    Python 3.14 on, `pathlib.Path.exists` takes each error for an absence."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def file_identity(path: Path | str) -> str | None:
    """Names a local file and its content, on this host: device, inode, size, and when it was changed. A file that was
    written, replaced or put back has another name, also where its size and date were kept. None where there is none, or
    where it can't be looked at."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return ".".join(f"{n:x}" for n in (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
