"""Opening datasets, and saying what went wrong in laketier's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from laketier.spi import CorruptTable, SnapshotNotFound, TableError, TableNotFound

if TYPE_CHECKING:
    from lance import LanceDataset

_SOURCE_LINE = re.compile(r",? (?:location: )?/home/\S+?\.rs:\d+(?::\d+)?")


def open_dataset(location: str, storage: Mapping[str, str], version: int | None = None) -> LanceDataset:
    """A fresh handle, never from a cache. Raises `TableNotFound`, `SnapshotNotFound` for a version that does not
    exist or was cleaned up, and `CorruptTable`."""
    import lance

    try:
        return lance.dataset(location, version=version, storage_options=dict(storage) or None)
    except (ValueError, OSError) as error:
        text = reason(error)
        if "was not found" not in text and "Not found" not in text:
            raise unreadable(location, error) from error
        if version is None:
            raise TableNotFound(
                "there is no Lance dataset", where=location, fix="Create the table first, or check lake.warehouse."
            ) from error
        open_dataset(location, storage)
        raise SnapshotNotFound(
            f"version {version} does not exist or was cleaned up",
            where=location,
            fix="`laketier history` lists the versions that can be read.",
        ) from error


def unreadable(location: str, error: Exception) -> TableError:
    """What to raise when Lance could not read a dataset: damaged, or the store did not answer as it should."""
    text = reason(error)
    if isinstance(error, ValueError) and "object store" not in text.lower():
        return CorruptTable("the Lance dataset can't be read", where=location, why=text)
    return TableError("Lance could not read the dataset", where=location, why=text)


def reason(error: BaseException) -> str:
    """Lance's message without the lines of its source code."""
    return _SOURCE_LINE.sub("", str(error)).strip().rstrip(".,")
