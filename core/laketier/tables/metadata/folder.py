"""The folder of the disk tier: a private one, per user and host."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

VARIABLE = "LAKETIER_CACHE_DIR"
_PRIVATE = 0o700


class UnsafeFolder(OSError):
    """The folder belongs to somebody else, is a link, or others may write into it."""


def cache_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """Where the disk tier lies: ``LAKETIER_CACHE_DIR``, else ``laketier`` below ``XDG_CACHE_HOME``, else below
    ``~/.cache``. None where there is no such place: no home, an empty variable, a relative path."""
    environment = os.environ if environment is None else environment
    given = environment.get(VARIABLE)
    if given is not None:
        return _absolute(given)
    if (base := _absolute(environment.get("XDG_CACHE_HOME", ""))) is not None:
        return base / "laketier"
    home = _absolute(environment.get("HOME", ""))
    return None if home is None else home / ".cache" / "laketier"


def open_private(folder: Path, *, create: bool, within: int | None = None) -> int:
    """A descriptor of a folder that is ours alone. What is opened by it can't be led elsewhere.

    Args:
        folder: An absolute path. Its parents may be links; it may not.
        create: Whether to make it, and its parents, where it is not there.
        within: A descriptor of its parent, which is taken whatever the path leads to by now.

    Returns:
        The descriptor, for the caller to close.

    Raises:
        UnsafeFolder: The folder is not this user's, is a link, or others may write into it.
        OSError: It can't be made or opened.
    """
    name = folder if within is None else Path(folder.name)
    if create:
        if within is None:
            folder.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(name, _PRIVATE, dir_fd=within)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    except OSError as error:
        if stat.S_ISLNK(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
            raise UnsafeFolder(f"{folder} is a link") from error
        raise
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(descriptor)
        raise UnsafeFolder(f"{folder} belongs to another user, or others may write into it")
    return descriptor


def _absolute(text: str) -> Path | None:
    path = Path(text)
    return path if text and path.is_absolute() and "\0" not in text else None
