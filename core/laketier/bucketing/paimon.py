"""The bucket function of Apache Paimon, as Fluss applies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laketier.bucketing.assigner import KeyAssigner
from laketier.bucketing.fluss import nanos_of_milli
from laketier.bucketing.keys import BucketKey, KeyKind, bucket_keys
from laketier.bucketing.murmur3 import FLINK_SEED, murmur3_flink, murmur3_words
from laketier.bucketing.rows import ByteRows, Integers, concatenated, fixed_width, little_endian, unscaled_bytes
from laketier.spi import BucketAssignerFactory, TableDescriptor

Slots = npt.NDArray[np.uint64]

_ALLOWED: Mapping[KeyKind, str | None] = dict.fromkeys(KeyKind)
_COMPACT_DECIMAL = 18
_COMPACT_TIMESTAMP = 3
_DECIMAL_BYTES = 16
_INLINE_BYTES = 7
_HEADER_BITS = 8


class PaimonAssigner(KeyAssigner):
    """Flink's Murmur3 over Paimon's binary row of the keys, modulo the count as Java has it, without its sign.
    Nulls are values: they have bits of their own in the row."""

    function = "paimon"
    hashes_nulls = True

    def buckets(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        row = _BinaryRow(len(columns[0]), len(columns))
        for position, (key, column) in enumerate(zip(self.keys, columns, strict=True)):
            row.write(position, key, column)
        return np.abs(row.hashes().view(np.int32).astype(np.int64)) % self.count


class PaimonAssignerFactory(BucketAssignerFactory):
    """Takes any number of scalar keys."""

    def create(self, descriptor: TableDescriptor) -> PaimonAssigner:
        keys = bucket_keys(descriptor, PaimonAssigner.function, _ALLOWED)
        assert descriptor.buckets is not None
        return PaimonAssigner(keys, descriptor.buckets.count)


class _BinaryRow:
    """Paimon's ``BinaryRow`` of many rows at once, without the arity in front: a header with the null bits, a slot of
    eight bytes per field, and behind them what does not fit a slot, in words."""

    def __init__(self, rows: int, arity: int) -> None:
        self._bits = (arity + 63 + _HEADER_BITS) // 64
        self._fixed: Slots = np.zeros((rows, self._bits + arity), dtype=np.uint64)
        self._end = np.full(rows, self._fixed.shape[1] * 8, dtype=np.uint64)
        self._behind: list[ByteRows | pa.Array] = []

    def write(self, position: int, key: BucketKey, column: pa.Array) -> None:
        slots = self._slots(key, column)
        if column.null_count:
            null = column.is_null().to_numpy(zero_copy_only=False)
            slots = np.where(null, np.uint64(0), slots)
            word, bit = divmod(position + _HEADER_BITS, 64)
            self._fixed[:, word] |= null.astype(np.uint64) << np.uint64(bit)
        self._fixed[:, self._bits + position] = slots

    def hashes(self) -> npt.NDArray[np.uint32]:
        if self._behind:
            return murmur3_flink(concatenated([little_endian(self._fixed), *self._behind]))
        words = self._fixed.view("<u4")
        return murmur3_words((words[:, i] for i in range(words.shape[1])), len(words), FLINK_SEED)

    def _slots(self, key: BucketKey, column: pa.Array) -> Slots:
        match key.kind:
            case KeyKind.STRING | KeyKind.BYTES:
                return self._text(column)
            case KeyKind.DECIMAL if key.precision > _COMPACT_DECIMAL:
                return self._append(column, _padded(unscaled_bytes(column), _DECIMAL_BYTES))
            case KeyKind.TIMESTAMP if key.precision > _COMPACT_TIMESTAMP:
                millis = little_endian(key.rescaled(column, "ms"))
                return self._append(column, millis, nanos_of_milli(key, column))
            case KeyKind.TIMESTAMP:
                return key.rescaled(column, "ms").view(np.uint64)
            case KeyKind.FLOAT:
                return fixed_width(column, np.uint32).astype(np.uint64)
            case KeyKind.DOUBLE:
                return fixed_width(column, np.uint64)
            case KeyKind.DECIMAL | KeyKind.BIGINT:
                return np.ascontiguousarray(key.integers(column)).view(np.uint64)
        width = {KeyKind.BOOLEAN: 8, KeyKind.TINYINT: 8, KeyKind.SMALLINT: 16}.get(key.kind, 32)
        return key.integers(column).view(np.uint64) & np.uint64(2**width - 1)

    def _text(self, column: pa.Array) -> Slots:
        column = column.cast(pa.large_binary())
        source = ByteRows.of(column)
        slots = (source.lengths.astype(np.uint64) | np.uint64(0x80)) << np.uint64(56)
        for position in range(_INLINE_BYTES):
            index = np.flatnonzero((source.lengths > position) & (source.lengths <= _INLINE_BYTES))
            byte = source.data[source.starts[index] + position].astype(np.uint64)
            slots[index] |= byte << np.uint64(8 * position)
        long = (source.lengths > _INLINE_BYTES) & column.is_valid().to_numpy(zero_copy_only=False)
        if not long.any():
            return slots
        lengths = np.where(long, source.lengths, 0)
        padding = ByteRows.of_matrix(np.zeros((len(lengths), 7), dtype=np.uint8), -lengths % 8)
        value = pc.if_else(pa.array(long), column, pa.scalar(b"", pa.large_binary()))
        offset = self._end.copy()
        self._behind += [value, padding]
        self._end += (lengths + padding.lengths).astype(np.uint64)
        return np.where(long, offset << np.uint64(32) | lengths.astype(np.uint64), slots)

    def _append(
        self, column: pa.Array, value: tuple[ByteRows, Integers] | ByteRows, low: Integers | None = None
    ) -> Slots:
        """Put words behind the row; the slot says where, and ``low``. A null takes no room."""
        if isinstance(value, tuple):
            value, low = value
        assert low is not None
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.where(valid, value.lengths, 0)
        slots: Slots = self._end << np.uint64(32) | low.astype(np.uint64)
        self._behind.append(ByteRows(value.data, value.starts, lengths))
        self._end += lengths.astype(np.uint64)
        return slots


def _padded(rows: ByteRows, width: int) -> tuple[ByteRows, Integers]:
    """Each row with zeros behind it up to ``width`` bytes, and its own length."""
    index = rows.starts[:, None] + np.arange(width)
    inside = np.arange(width) < rows.lengths[:, None]
    matrix = np.where(inside, rows.data.take(index, mode="clip"), np.uint8(0))
    return ByteRows.of_matrix(matrix), rows.lengths
