"""Tells a source that fills the memory of a batch again.

Writers keep batches until they have enough rows for a file. So the rows of that batch would be lost, and those of the
next be there twice.
"""

from __future__ import annotations

from zlib import crc32

import pyarrow as pa

_BATCHES = 4
"""So many batches are looked at: who has a few buffers, and fills them in turn, does so from the first one on."""
_BYTES = 1 << 16
"""So much of each buffer is compared."""


class Kept:
    """Holds the first batches of a split for a moment, to see whether they stay as they were. While a batch is held,
    nobody but the source itself can write into its memory."""

    def __init__(self) -> None:
        self._first: list[tuple[pa.RecordBatch, int]] = []
        self._looks = 0

    def are_changed(self) -> bool:
        """Whether a batch that is held is another one by now."""
        if self._looks > _BATCHES:
            return False
        self._looks += 1
        found = any(_digest(batch) != digest for batch, digest in self._first)
        if self._looks > _BATCHES:
            self._first.clear()
        return found

    def hold(self, batch: pa.RecordBatch) -> None:
        """Hold a batch, if it is one of the first."""
        if self._looks <= _BATCHES and batch.num_rows:
            self._first.append((batch, _digest(batch)))


def _digest(batch: pa.RecordBatch) -> int:
    digest = 0
    for column in batch.columns:
        for buffer in column.buffers():
            if buffer is not None and buffer.is_cpu:
                digest = crc32(memoryview(buffer)[:_BYTES], digest)
    return digest
