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

from laketier.kit.durable import fsync_directory, make_directories


class DurableFileIO(PyArrowFileIO):
    """`PyArrowFileIO` whose local output files are on the device, with their names, once they are closed."""

    def new_output(self, location: str) -> PyArrowFile:
        """An output file; local ones are durable."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return super().new_output(location)
        return _DurableFile(self.fs_by_scheme(scheme, netloc), location, path)


class _DurableFile(PyArrowFile):
    def __init__(self, fs: Any, location: str, path: str) -> None:
        super().__init__(fs=fs, location=location, path=path)
        self._local = Path(path)

    def create(self, overwrite: bool = False) -> Any:
        make_directories(self._local.parent)
        return io.BufferedWriter(_Stream(self._local, "w" if overwrite else "x"))


class _Stream(io.FileIO):
    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._path = path

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
            super().close()
            fsync_directory(self._path.parent)
