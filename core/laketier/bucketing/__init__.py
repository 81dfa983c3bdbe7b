"""Bucket functions over Arrow, vectorised: the hash functions of those who defined them; it may use `spi` and `kit`.

So that the buckets of a lake table align with those of its source, and with those that another engine computes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from laketier.bucketing.fluss import FlussAssignerFactory
from laketier.bucketing.hudi import HudiAssignerFactory
from laketier.bucketing.iceberg import IcebergAssigner, IcebergAssignerFactory
from laketier.bucketing.paimon import PaimonAssignerFactory
from laketier.spi import BucketAssigner, BucketAssignerFactory, ConfigError, TableDescriptor

__all__ = ["BUCKET_FUNCTIONS", "IcebergAssigner", "IcebergAssignerFactory", "assigner_for"]

BUCKET_FUNCTIONS: Mapping[str, BucketAssignerFactory] = MappingProxyType(
    {
        "fluss": FlussAssignerFactory(),
        "iceberg": IcebergAssignerFactory(),
        "paimon": PaimonAssignerFactory(),
        "hudi": HudiAssignerFactory(),
    }
)
"""The bucket functions by the name that ``BucketSpec.function`` has for them."""


def assigner_for(descriptor: TableDescriptor) -> BucketAssigner:
    """The assigner for a table's buckets, by its bucket function. Picklable.

    Raises `ConfigError` when the table has no buckets, its function is unknown, or the function can't hash the keys.
    """
    function = descriptor.buckets.function if descriptor.buckets else "fluss"
    factory = BUCKET_FUNCTIONS.get(function)
    if factory is None:
        near = difflib.get_close_matches(function.lower(), BUCKET_FUNCTIONS, n=1)
        raise ConfigError(
            f"{function!r} is not a bucket function",
            fix=f"Did you mean {near[0]!r}?" if near else f"They are {', '.join(BUCKET_FUNCTIONS)}.",
        )
    return factory.create(descriptor)
