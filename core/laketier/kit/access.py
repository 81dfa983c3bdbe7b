"""Explains the refusals of a local file system to hold a table."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laketier.spi.errors import ConfigError, StorageError

_RIGHTS = "Give user {user} write access to the table's folder"
_FOR_NOW = {
    errno.EACCES: _RIGHTS,
    # Of `link`, too, on a file system that has none.
    errno.EPERM: f"{_RIGHTS}, on a file system that has hard links",
    errno.EROFS: "Mount it for writing",
}


@contextmanager
def access(doing: str, *, where: Path | str) -> Iterator[None]:
    """Turn refusals that a user can correct into errors that say how. `ConfigError`: a file in a folder's place, or a
    file system without hard links. `StorageError`: missing rights, and a read-only mount, as the system itself mounts a
    disk that failed. Both come and go beneath a table that was fine, and writes go on once they are mended. All other
    errors pass."""
    try:
        yield
    except NotADirectoryError as error:
        raise _unfit(doing, error, where=where) from error
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            raise _unfit(doing, error, where=where) from error
        if error.errno in _FOR_NOW:
            raise StorageError(
                f"{doing} was refused by the file system",
                where=str(error.filename or where),
                why=str(error.strerror or error),
                fix=_FOR_NOW[error.errno].format(user=os.geteuid()) + ", or set lake.warehouse to another place.",
            ) from error
        raise


def _unfit(doing: str, error: OSError, *, where: Path | str) -> ConfigError:
    return ConfigError(
        f"{doing} was refused by the file system",
        where=str(error.filename or where),
        why=str(error.strerror or error),
        fix="Set lake.warehouse to another place: it must be a folder, whose file system has hard links.",
    )
