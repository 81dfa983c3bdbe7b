"""A FileIO for the embedded catalog that makes metadata durable: a commit that was answered survives a power cut.

pyiceberg closes manifests and metadata files without flushing them to the device, while SQLite does flush the row
that points at them.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from laketier.kit.durable import fsync_directory, make_directories


class DurableFileIO(PyArrowFileIO):
    """`PyArrowFileIO` whose local output files are on the device, with their names, once they are closed. It is made
    anew with each load of a table. So a commit, which writes three files into one folder, makes that durable once."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self.durable: dict[Path, tuple[int, int] | None] = {}

    def new_output(self, location: str) -> PyArrowFile:
        """An output file; local ones are durable."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return super().new_output(location)
        return _DurableFile(self.fs_by_scheme(scheme, netloc), location, path, self.durable)


class _DurableFile(PyArrowFile):
    def __init__(self, fs: Any, location: str, path: str, durable: dict[Path, tuple[int, int] | None]) -> None:
        super().__init__(fs=fs, location=location, path=path)
        self._local = Path(path)
        self._durable = durable

    def create(self, overwrite: bool = False) -> Any:
        folder = self._local.parent
        known = self._durable.get(folder)
        if known is None or known != _identity(folder):
            make_directories(folder)
            self._durable[folder] = _identity(folder)
        return io.BufferedWriter(_Stream(self._local, "w" if overwrite else "x"))


def _identity(folder: Path) -> tuple[int, int] | None:
    """None where it is gone."""
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class _Stream(io.FileIO):
    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._path = path

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
            super().close()
            fsync_directory(self._path.parent)
