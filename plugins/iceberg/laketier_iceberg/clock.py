"""The time for a table: by the clock of its storage, which no host can move. Driver."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from laketier.spi import host_time, time_of_storage
from laketier_iceberg.files import Files

if TYPE_CHECKING:
    from pyiceberg.table import Table


def storage_time(properties: Mapping[str, str], location: str) -> int:
    """By the storage of ``location``, which takes a file for it; ms since the epoch. ``properties``: of the table's
    FileIO. Raises `OSError` and `StorageError`."""
    filesystem, folder = Files(properties).resolve(location)
    if isinstance(filesystem, pafs.LocalFileSystem):
        # A table whose files are all elsewhere (write.data.path, write.metadata.path) need not have a folder.
        while filesystem.get_file_info(folder).type is pafs.FileType.NotFound and folder != posixpath.dirname(folder):
            folder = posixpath.dirname(folder)
    return time_of_storage(filesystem, folder)


def known_time(table: Table) -> int:
    """The later of what this host says and when the storage dated the newest metadata file: for looks that change
    nothing. A host that is behind takes no time of the table for one that has not come yet."""
    try:
        filesystem, path = Files(table.io.properties).resolve(table.metadata_location)
        dated = filesystem.get_file_info(path).mtime_ns
    except (OSError, ValueError):  # a server's own file, which only it can read
        dated = None
    return host_time() if dated is None else max(host_time(), dated // 1_000_000)
