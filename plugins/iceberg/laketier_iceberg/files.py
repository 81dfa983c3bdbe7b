"""Where data files are: the file system of a location, from the same properties that pyiceberg reads."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from laketier.kit import TableFolder
from laketier.kit.durable import fsync_directory, fsync_file, make_directories
from laketier_iceberg.locations import is_local, split

log = logging.getLogger(__name__)

_PATH_ONLY = ("hdfs", "viewfs")


class Files:
    """Reads, creates and deletes files by location (a URI or an absolute path). Driver and executors.

    Local files need pyarrow alone; object stores are opened by pyiceberg's own PyArrowFileIO.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._io: Any = None

    def create(self, location: str) -> Any:
        """An output stream for a new file. On local disks the name must be free."""
        filesystem, path = self.resolve(location)
        if isinstance(filesystem, pafs.LocalFileSystem):
            make_directories(Path(path).parent)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        return filesystem.open_output_stream(path)

    def make_durable(self, location: str) -> None:
        """Flush a closed file. Object stores have done so when they answered."""
        filesystem, path = self.resolve(location)
        if isinstance(filesystem, pafs.LocalFileSystem):
            fsync_file(path)

    def make_names_durable(self, folder: str) -> None:
        """Flush the names of the files created in ``folder``."""
        filesystem, path = self.resolve(folder)
        if isinstance(filesystem, pafs.LocalFileSystem):
            fsync_directory(path)

    def open(self, location: str) -> Any:
        """A random-access file. Raises `FileNotFoundError`."""
        filesystem, path = self.resolve(location)
        return filesystem.open_input_file(path)

    def folder(self, location: str) -> TableFolder:
        """The files below a location, for what lists, compares and deletes them."""
        filesystem, root = self.resolve(location)
        return TableFolder(filesystem, root.rstrip("/"))

    def delete(self, location: str) -> None:
        """Of a writer's own files. Best effort: one that is gone is fine, any other failure is logged."""
        try:
            filesystem, path = self.resolve(location)
            filesystem.delete_file(path)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s could not be deleted, orphan collection will find it: %s", location, error)

    def resolve(self, location: str) -> tuple[pafs.FileSystem, str]:
        """The file system and the path on it."""
        parts = split(location)
        if is_local(parts):
            return pafs.LocalFileSystem(), parts.path
        from pyiceberg.io.pyarrow import PyArrowFileIO

        if self._io is None:
            self._io = PyArrowFileIO(dict(self._properties))
        # As its `parse_location` says, which cuts a path off at "#" and "?".
        path = parts.path if parts.scheme in _PATH_ONLY else f"{parts.authority}{parts.path}"
        return self._io.fs_by_scheme(parts.scheme, parts.authority), path
