"""Common parts of all bucket functions: reading the keys, refusing nulls, working in pieces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laketier.bucketing.keys import BucketKey
from laketier.spi import BucketAssigner, UnstorableRows

PIECE_ROWS = 65_536
PIECE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class KeyAssigner(BucketAssigner):
    """Hashes key columns piece by piece, so that what it needs beside the batch stays small."""

    function: ClassVar[str]
    hashes_nulls: ClassVar[bool] = False

    keys: tuple[BucketKey, ...]
    count: int

    @abstractmethod
    def buckets(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """The bucket of each row, from the key columns in the order of `keys`. At least one row."""

    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [key.column(batch) for key in self.keys]
        if not self.hashes_nulls:
            self._refuse_nulls(columns)
        result = np.empty(batch.num_rows, dtype=np.int32)
        for start, rows in _pieces(columns, 0, batch.num_rows):
            result[start : start + rows] = self.buckets([column.slice(start, rows) for column in columns])
        return pa.array(result)

    def _refuse_nulls(self, columns: Sequence[pa.Array]) -> None:
        for key, column in zip(self.keys, columns, strict=True):
            if column.null_count:
                raise UnstorableRows(
                    f"the bucket key {key.name!r} has {column.null_count} nulls",
                    why=f"the bucket function {self.function!r} has no bucket for them",
                    fix="Filter or fill them in the query, or bucket by another column.",
                )


def _pieces(columns: Sequence[pa.Array], start: int, rows: int) -> Iterator[tuple[int, int]]:
    """(start, rows) of pieces that are small in rows and, where one row is not too large by itself, in bytes."""
    if rows == 0:
        return
    small = rows == 1 or sum(column.slice(start, rows).nbytes for column in columns) <= PIECE_BYTES
    if rows <= PIECE_ROWS and small:
        yield start, rows
        return
    half = rows // 2 if rows <= PIECE_ROWS else rows // 2 // PIECE_ROWS * PIECE_ROWS or PIECE_ROWS
    yield from _pieces(columns, start, half)
    yield from _pieces(columns, start + half, rows - half)
