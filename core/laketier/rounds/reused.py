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
"""About so much of each batch is compared, of its first rows."""
_BYTES_AT_ONCE = 64 << 20
"""Of the batches that are kept, at most, unless it is one: the next is read while the one before is there anyway."""


class Kept:
    """Holds the first batches of a split for a moment, to see whether they stay as they were. While a batch is held,
    nobody but the source itself can write into its memory."""

    def __init__(self) -> None:
        self._first: list[tuple[pa.RecordBatch, int, int]] = []
        self._looks = 0

    def are_changed(self) -> bool:
        """Whether a batch that is held is another one by now."""
        if self._looks > _BATCHES:
            return False
        self._looks += 1
        found = any(_digest(rows) != digest for rows, digest, _ in self._first)
        if self._looks > _BATCHES:
            self._first.clear()
        return found

    def hold(self, batch: pa.RecordBatch) -> None:
        """Hold a batch, if it is one of the first."""
        if self._looks > _BATCHES or not batch.num_rows:
            return
        size = max(batch.nbytes, 1)
        rows = batch.slice(0, max(1, min(_BYTES, batch.num_rows * _BYTES // size)))
        self._first.append((rows, _digest(rows), size))
        while len(self._first) > 1 and sum(each[-1] for each in self._first) > _BYTES_AT_ONCE:
            del self._first[0]


def _digest(rows: pa.RecordBatch) -> int:
    """Of these rows alone: a source may write the next ones behind them, into the same memory."""
    return crc32(rows.serialize())
