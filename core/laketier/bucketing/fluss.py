"""The bucket function of Fluss, which its Lance tables use as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laketier.bucketing.assigner import KeyAssigner
from laketier.bucketing.keys import BucketKey, KeyKind, bucket_keys
from laketier.bucketing.murmur3 import flink_bit_mix, murmur3_flink
from laketier.bucketing.rows import ByteRows, Integers, concatenated, fixed_width, little_endian, unscaled_bytes
from laketier.spi import BucketAssignerFactory, TableDescriptor

_ALLOWED: Mapping[KeyKind, str | None] = dict.fromkeys(KeyKind)
_COMPACT_DECIMAL = 18
_COMPACT_TIMESTAMP = 3


class FlussAssigner(KeyAssigner):
    """Flink's Murmur3 over the compacted key, mixed once more, modulo the count. Refuses nulls."""

    function = "fluss"

    def buckets(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        return flink_bit_mix(murmur3_flink(compacted_key(self.keys, columns))) % self.count


class FlussAssignerFactory(BucketAssignerFactory):
    """Takes any number of scalar keys."""

    def create(self, descriptor: TableDescriptor) -> FlussAssigner:
        keys = bucket_keys(descriptor, FlussAssigner.function, _ALLOWED)
        assert descriptor.buckets is not None
        return FlussAssigner(keys, descriptor.buckets.count)


def compacted_key(keys: Sequence[BucketKey], columns: Sequence[pa.Array]) -> ByteRows:
    """Encode the fields of each row, without null bits, as Fluss's ``CompactedKeyEncoder`` does."""
    parts = [part for key, column in zip(keys, columns, strict=True) for part in _field(key, column)]
    if len(parts) == 1 and isinstance(parts[0], ByteRows):
        return parts[0]
    return concatenated(parts)


def _field(key: BucketKey, column: pa.Array) -> list[ByteRows | pa.Array]:
    match key.kind:
        case KeyKind.STRING | KeyKind.BYTES:
            lengths = ByteRows.of(column).lengths
            return [_varint(lengths, 32), column]
        case KeyKind.INT | KeyKind.DATE | KeyKind.TIME:
            return [_varint(key.integers(column), 32)]
        case KeyKind.BIGINT:
            return [_varint(key.integers(column), 64)]
        case KeyKind.DECIMAL if key.precision <= _COMPACT_DECIMAL:
            return [_varint(key.integers(column), 64)]
        case KeyKind.DECIMAL:
            unscaled = unscaled_bytes(column)
            return [_varint(unscaled.lengths, 32), unscaled]
        case KeyKind.TIMESTAMP:
            millis = _varint(key.rescaled(column, "ms"), 64)
            if key.precision <= _COMPACT_TIMESTAMP:
                return [millis]
            return [millis, _varint(nanos_of_milli(key, column), 32)]
        case KeyKind.BOOLEAN | KeyKind.TINYINT:
            return [little_endian(key.integers(column).astype(np.int8))]
    return [little_endian(fixed_width(column, {KeyKind.SMALLINT: "<i2", KeyKind.FLOAT: "<f4"}.get(key.kind, "<f8")))]


def nanos_of_milli(key: BucketKey, column: pa.Array) -> Integers:
    """Of a timestamp in µs or ns what its milliseconds leave over, in ns."""
    if key.type.unit == "us":
        return key.integers(column) % 1_000 * 1_000
    return key.integers(column) % 1_000_000


def _varint(values: Integers, bits: int) -> ByteRows:
    """Unsigned LEB128 of the two's complement."""
    unsigned = values.view(np.uint64) if bits == 64 else values.astype(np.uint32).astype(np.uint64)
    lengths = np.ones(len(values), dtype=np.int64)
    largest = int(unsigned.max())
    for shift in range(7, max(largest.bit_length(), 1), 7):
        lengths += unsigned >> np.uint64(shift) != 0
    matrix = np.empty((len(values), int(lengths.max())), dtype=np.uint8)
    for position in range(matrix.shape[1]):
        low = (unsigned >> np.uint64(7 * position)).astype(np.uint8) & np.uint8(0x7F)
        matrix[:, position] = low | ((lengths > position + 1).view(np.uint8) << 7)
    return ByteRows.of_matrix(matrix, lengths)
