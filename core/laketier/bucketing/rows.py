"""Arrow columns as numpy arrays over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ByteRows:
    """One run of bytes per row: row ``i`` is ``data[starts[i] : starts[i] + lengths[i]]``."""

    data: npt.NDArray[np.uint8]
    starts: Integers
    lengths: Integers

    @classmethod
    def of(cls, array: pa.Array) -> ByteRows:
        """The bytes of a string or binary column, without copying them. A null is whatever lies below it."""
        if pt.is_fixed_size_binary(array.type):
            width = array.type.byte_width
            starts = np.arange(array.offset, array.offset + len(array), dtype=np.int64) * width
            return cls(_bytes(array.buffers()[1]), starts, np.full(len(array), width, dtype=np.int64))
        kind = np.int64 if pt.is_large_string(array.type) or pt.is_large_binary(array.type) else np.int32
        offsets = _view(array.buffers()[1], kind, array.offset, len(array) + 1).astype(np.int64)
        return cls(_bytes(array.buffers()[2]), offsets[:-1], np.diff(offsets))

    @classmethod
    def of_matrix(cls, matrix: npt.NDArray[np.uint8], lengths: Integers | None = None) -> ByteRows:
        """The rows of a matrix; of each row its first ``lengths`` bytes only, where given."""
        rows, width = matrix.shape
        if lengths is None:
            lengths = np.full(rows, width, dtype=np.int64)
        return cls(np.ascontiguousarray(matrix).reshape(-1), np.arange(rows, dtype=np.int64) * width, lengths)

    def to_arrow(self) -> pa.Array:
        """The same bytes as a large_binary column: packed, in order."""
        offsets = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        index = np.repeat(self.starts - offsets[:-1], self.lengths)
        index += np.arange(len(index), dtype=np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data[index])]
        return pa.Array.from_buffers(pa.large_binary(), len(self.lengths), buffers)


def concatenated(parts: Sequence[ByteRows | pa.Array]) -> ByteRows:
    """The parts of each row, one behind the other. No part may have nulls."""
    arrays = [part.to_arrow() if isinstance(part, ByteRows) else part.cast(pa.large_binary()) for part in parts]
    return ByteRows.of(pc.binary_join_element_wise(*arrays, pa.scalar(b"", pa.large_binary())))


def fixed_width(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """The values of a fixed-width column as numpy sees them. A null is whatever lies below it."""
    return _view(array.buffers()[1], kind, array.offset, len(array))


def unscaled_bytes(array: pa.Array) -> ByteRows:
    """Java's ``BigDecimal.unscaledValue().toByteArray()`` of a decimal128 column: big-endian, as short as can be."""
    little = fixed_width(array, np.dtype((np.uint8, 16)))
    big = np.ascontiguousarray(little[:, ::-1])
    sign = big[:, :1] >> 7
    # A leading byte says nothing if it only repeats the sign that the byte behind it has as well.
    redundant = (big[:, :15] == sign * np.uint8(255)) & ((big[:, 1:] >> 7) == sign)
    skip = np.logical_and.accumulate(redundant, axis=1).sum(axis=1, dtype=np.int64)
    return ByteRows(big.reshape(-1), np.arange(len(array), dtype=np.int64) * 16 + skip, 16 - skip)


def little_endian(values: npt.NDArray[Any]) -> ByteRows:
    """The bytes of each value as they lie in memory."""
    return ByteRows.of_matrix(np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1))


def _bytes(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return np.empty(0, dtype=np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)


def _view(buffer: pa.Buffer, kind: Any, offset: int, count: int) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    return np.frombuffer(buffer, dtype=dtype, count=count, offset=offset * dtype.itemsize)
