"""A folder on a local disk of which its holder can tell whether it is still the one that the path leads to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from laketier.spi.errors import Conflict


@contextmanager
def pinned_folder(path: Path | None) -> Iterator[Callable[[], bool]]:
    """Keep the folder at ``path`` open. What is given tells whether ``path`` still leads to it. Driver, around a commit
    by a library that makes missing folders: so a commit into a table that was dropped, or made anew, meanwhile can be
    told, and taken back. As long as the folder is open, the system gives its number to no other. None, for a table that
    is on no disk, is always in place. Raises `Conflict` when there is no such folder."""
    if path is None:
        yield lambda: True
        return
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Conflict("the table was dropped meanwhile", where=str(path)) from error

    def is_in_place() -> bool:
        try:
            return os.path.samestat(os.stat(path), os.fstat(folder))
        except (FileNotFoundError, NotADirectoryError):
            return False

    try:
        yield is_in_place
    finally:
        os.close(folder)
