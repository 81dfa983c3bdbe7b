"""Explains the refusals of a local file system to hold a table."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laketier.spi.errors import ConfigError, StorageError


@contextmanager
def access(doing: str, *, where: Path | str) -> Iterator[None]:
    """Turn refusals that a user can correct (permissions, a file in a folder's place, no hard links) into
    `ConfigError`. A read-only mount is a `StorageError`: a disk that failed is mounted so by the system itself, and
    writes go on once it is mended. All other errors pass."""
    try:
        yield
    except (PermissionError, NotADirectoryError) as error:
        raise _refused(doing, error, where=where) from error
    except OSError as error:
        if error.errno == errno.EROFS:
            raise StorageError(
                f"{doing} was refused by the file system",
                where=str(error.filename or where),
                why=str(error.strerror or error),
                fix="Mount it for writing, or set lake.warehouse to another place.",
            ) from error
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            raise _refused(doing, error, where=where) from error
        raise


def _refused(doing: str, error: OSError, *, where: Path | str) -> ConfigError:
    return ConfigError(
        f"{doing} was refused by the file system",
        where=str(error.filename or where),
        why=str(error.strerror or error),
        fix=f"Give user {os.geteuid()} write access to the table's folder, or set lake.warehouse to another one; its "
        "file system must have hard links.",
    )
