"""The one place that translates an `OSError` of the storage into a named error."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from laketier.kit.library_errors import in_one_line, numbers_of_the_system
from laketier.spi.errors import StorageError

_FIXES = {
    errno.EACCES: "Let the user that runs this process read and write there, on the driver and on every executor.",
    errno.EPERM: "Let the user that runs this process read and write there, on the driver and on every executor.",
    errno.EROFS: "Mount it for writing, or set {setting} to another place.",
    errno.ENOSPC: "Free some space{there}. Nothing of this round was published; it can be run again.",
    errno.EDQUOT: "Raise the quota{there}. Nothing of this round was published; it can be run again.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n), or lower the number of partitions per task.",
    errno.ENOENT: "Check {setting}, that this machine sees it, and whether somebody dropped the table.",
}


@contextmanager
def naming_storage_errors(doing: str, *, setting: str = "lake.warehouse") -> Iterator[None]:
    """Raise an `OSError` of the body as `StorageError`, with the action, the place, the reason and the next step.
    ``setting`` is the configuration key that names the place."""
    try:
        yield
    except OSError as error:
        where = None if error.filename is None else str(error.filename)
        told = in_one_line(error.strerror or str(error))
        why = told[:1].lower() + told[1:]
        # Libraries in Rust raise it with the number in their words alone.
        numbers = numbers_of_the_system(error) if error.errno is None else [error.errno]
        fix = next((_FIXES[number] for number in numbers if number in _FIXES), None)
        there = "" if where else f" in the place of {setting}, or in the folder of temporary files"
        fix = None if fix is None else fix.format(setting=setting, there=there)
        raise StorageError(f"the storage refused while {doing}", where=where, why=why, fix=fix) from error
