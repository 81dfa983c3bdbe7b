"""Assigns rows to buckets."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from laketier.spi.table import TableDescriptor


class BucketAssigner(ABC):
    """Assigns rows to buckets. Vectorised, picklable, used on executors."""

    @abstractmethod
    def assign(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the bucket of each row.

        Args:
            batch: Rows with at least the key columns.

        Returns:
            An int32 array as long as ``batch``, with bucket numbers from 0 and no nulls.

        Raises:
            UnstorableRows: The function refuses a key, as most functions refuse nulls.
        """


class BucketAssignerFactory(ABC):
    """Makes an assigner from a table's descriptor, so that the lake's buckets match the source's. Driver."""

    @abstractmethod
    def create(self, descriptor: TableDescriptor) -> BucketAssigner:
        """Make the assigner of a table.

        Args:
            descriptor: The table.

        Returns:
            The assigner.

        Raises:
            ConfigError: The descriptor has no buckets, or the function can't hash the type of a key.
        """
