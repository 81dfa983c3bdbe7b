"""Files in a folder that is given by its descriptor, so that no link leads elsewhere."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

_BLOCK = 512
"""The unit of ``st_blocks``, whatever the file system's own blocks are."""


@dataclass(frozen=True)
class Found:
    """A file with a name of ours.

    Attributes:
        name: In its folder.
        is_temporary: Whether its writer had not finished it.
        bytes: What it takes on the disk.
        written_at: By the clock of its file system, in ns.
    """

    name: str
    is_temporary: bool
    bytes: int
    written_at: int


def allocated(found: os.stat_result) -> int:
    """What a file takes on the disk: a small one takes a block, and a sparse one may yet be filled."""
    return max(found.st_size, found.st_blocks * _BLOCK)


def content(folder: int, name: str, most: int) -> bytes | None:
    """The content of a regular file of ours; None where there is none, and nothing of a pipe, a link, another user's,
    or one of more than ``most`` bytes. Raises `OSError`."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            return b""
        raise
    with open(descriptor, "rb", closefd=True) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > most:
            return b""
        return file.read(most + 1)


def replace(folder: int, name: str, data: bytes) -> None:
    """Write ``data`` beside ``name``, and put it in its place. Raises `OSError`, and leaves nothing then."""
    temporary = f".{name}.{token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb", closefd=True) as file:
            file.write(data)
        os.rename(temporary, f"{name}.json", src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
