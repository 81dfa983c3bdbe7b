"""The bucket transform of Apache Iceberg (its specification, appendix B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laketier.bucketing.assigner import KeyAssigner
from laketier.bucketing.keys import BucketKey, KeyKind, bucket_keys
from laketier.bucketing.murmur3 import STANDARD_SEED, Hashes, murmur3_standard, murmur3_words
from laketier.bucketing.rows import ByteRows, unscaled_bytes
from laketier.spi import BucketAssignerFactory, ConfigError, TableDescriptor

_NOT_BUCKETABLE = "Iceberg's specification has no hash for it"
_ALLOWED: Mapping[KeyKind, str | None] = {
    kind: _NOT_BUCKETABLE if kind in (KeyKind.BOOLEAN, KeyKind.FLOAT, KeyKind.DOUBLE) else None for kind in KeyKind
}


class IcebergAssigner(KeyAssigner):
    """Standard Murmur3, without its sign, modulo the count. Refuses nulls: Iceberg puts them into no bucket."""

    function = "iceberg"

    def buckets(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        positive = iceberg_hash(self.keys[0], columns[0]) & np.uint32(0x7FFFFFFF)
        return positive.astype(np.int64) % self.count

    def transform(self, batch: pa.RecordBatch) -> pa.Array:
        """As `assign`, with null for null: the value of the partition field ``bucket(n, column)``."""
        column = self.keys[0].column(batch)
        filled = pa.RecordBatch.from_arrays([_without_validity(column)], names=[self.keys[0].name])
        return pc.if_else(column.is_valid(), self.assign(filled), pa.scalar(None, pa.int32()))


class IcebergAssignerFactory(BucketAssignerFactory):
    """Takes one key."""

    def create(self, descriptor: TableDescriptor) -> IcebergAssigner:
        keys = bucket_keys(descriptor, IcebergAssigner.function, _ALLOWED)
        assert descriptor.buckets is not None
        if len(keys) != 1:
            raise ConfigError(
                f"{len(keys)} bucket keys ({', '.join(key.name for key in keys)})",
                why="Iceberg buckets by one column",
                fix="Choose one of them, or another bucket function.",
            )
        return IcebergAssigner(keys, descriptor.buckets.count)


def iceberg_hash(key: BucketKey, column: pa.Array) -> Hashes:
    """The 32-bit hash of each value; of a null, that of whatever lies below it."""
    match key.kind:
        case KeyKind.STRING | KeyKind.BYTES:
            return murmur3_standard(ByteRows.of(column))
        case KeyKind.DECIMAL:
            return murmur3_standard(unscaled_bytes(column))
        case KeyKind.TIME | KeyKind.TIMESTAMP:
            values = key.rescaled(column, "us")
        case _:
            values = key.integers(column)
    halves = np.ascontiguousarray(values).view("<u4").reshape(-1, 2)
    return murmur3_words((halves[:, 0], halves[:, 1]), len(values), STANDARD_SEED)


def _without_validity(column: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(column.type, len(column), [None, *column.buffers()[1:]], offset=column.offset)
