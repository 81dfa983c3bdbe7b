"""What tells the files that were taken, and their order, from those of another history of the same ledger."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.connectors.files.files import Files

_KEPT = 16
"""A round asks about its start and its end, and the next one begins at that end. Several lake tables may follow the
same files, each at its own place."""
_AT_ONCE = 65_536
"""Paths that are copied to be looked at."""


class History:
    """Digests of the first files of a ledger. Each is made from the one before, so a file is looked at once. By path,
    size and time: where the storage was copied, files have other numbers on the disk. One thread at a time."""

    def __init__(self) -> None:
        self._known: list[tuple[int, tuple[Any, ...]]] = []

    def stamp(self, files: Files, end: int) -> str:
        """The stamp of the first ``end`` of the ``files``."""
        before = [known for known in self._known if known[0] <= end]
        start, digests = max(before, key=lambda known: known[0], default=(0, tuple(hashlib.sha256() for _ in range(3))))
        if start < end:
            digests = tuple(digest.copy() for digest in digests)
            # Column by column: then it does not matter at which files earlier stamps ended.
            for at in range(start, end, _AT_ONCE):
                part = slice(at, min(at + _AT_ONCE, end))
                digests[0].update(_ended(files.paths[part]))
                digests[1].update(files.sizes[part].astype("<i8").tobytes())
                digests[2].update(files.mtimes[part].astype("<i8").tobytes())
            self._known = [*self._known, (end, digests)][-_KEPT:]
        return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()[:32]


def _ended(paths: pa.StringArray) -> memoryview:
    """All of them in a row, each with a zero byte behind it."""
    ended = pc.binary_join_element_wise(paths, "", "\0")
    if isinstance(ended, pa.ChunkedArray):
        ended = ended.combine_chunks()
    return memoryview(ended.buffers()[2])[: pc.sum(pc.binary_length(ended)).as_py()]
