"""Which bucket a row belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from laketier.spi.table import TableDescriptor


class BucketAssigner(ABC):
    """Assigns rows to buckets. Vectorised, picklable, used on executors."""

    @abstractmethod
    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        """An int32 array as long as ``batch``: the bucket of each row, from 0. No nulls. Raises `IncompatibleData`
        for keys that the function refuses (nulls, in most)."""


class BucketAssignerFactory(ABC):
    """Makes an assigner from a table's descriptor, so that the lake's buckets align with the source's."""

    @abstractmethod
    def create(self, descriptor: TableDescriptor) -> BucketAssigner:
        """Raises `ConfigError` when the descriptor has no buckets, or key types the function can't hash."""
