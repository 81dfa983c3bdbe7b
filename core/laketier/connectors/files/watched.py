"""Whose fault an error over a file is: the storage's, which may be better in a minute, or its bytes', which never are.

Arrow says both as an ``OSError`` without a number where the storage is no disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Storage:
    """``failed``: whether it refused a read of a file, or may have."""

    failed: bool = False


class WatchedFile:
    """``file``, as Python and ``pa.PythonFile`` read it. A read that raises is told to ``storage``."""

    def __init__(self, file: Any, storage: Storage) -> None:
        self._file = file
        self._storage = storage

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def read(self, size: int = -1) -> bytes:
        return bytes(self._call(self._file.read, None if size < 0 else size))

    def seek(self, position: int, whence: int = 0) -> int:
        return int(self._call(self._file.seek, position, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def size(self) -> int:
        return int(self._call(self._file.size))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """The file is its owner's."""

    def _call(self, what: Any, *arguments: Any) -> Any:
        try:
            return what(*arguments)
        except Exception:
            self._storage.failed = True
            raise
