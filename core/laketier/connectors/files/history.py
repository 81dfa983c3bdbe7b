"""What tells the files that were taken, and their order, from those of another history of the same ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from laketier.connectors.files.files import Files

_KEPT = 2
"""A round asks about its start and its end, and the next one begins at that end."""


class History:
    """Digests of the first files of a ledger. Each is made from the one before, so a file is looked at once. By path,
    size and time: where the storage was copied, files have other numbers on the disk. One thread at a time."""

    def __init__(self) -> None:
        self._known: list[tuple[int, tuple[Any, ...]]] = []

    def stamp(self, files: Files, end: int) -> str:
        """The stamp of the first ``end`` of the ``files``."""
        before = [known for known in self._known if known[0] <= end]
        start, digests = max(before, key=lambda known: known[0], default=(0, tuple(_new() for _ in range(3))))
        if start < end:
            part = slice(start, end)
            digests = tuple(digest.copy() for digest in digests)
            # Column by column: then it does not matter at which files earlier stamps ended.
            digests[0].update("".join(f"{path}\0" for path in files.paths[part].to_pylist()).encode())
            digests[1].update(files.sizes[part].astype("<i8").tobytes())
            digests[2].update(files.mtimes[part].astype("<i8").tobytes())
            self._known = [*self._known, (end, digests)][-_KEPT:]
        return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()[:32]


_new: Callable[[], Any] = hashlib.sha256
