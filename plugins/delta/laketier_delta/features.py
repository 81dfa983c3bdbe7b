"""The features of the format, and the reasons for missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from laketier.spi import FULL, Feature, Support, unsupported

FORMAT = "delta"

FEATURES: Mapping[Feature, Support] = MappingProxyType(
    {
        Feature.OVERWRITE: FULL,
        Feature.UPSERT: FULL,
        Feature.PARTITIONING: FULL,
        Feature.PARTITION_TRANSFORMS: unsupported("Delta partitions by the values of columns only"),
        Feature.BUCKETING: FULL,
        Feature.ADD_COLUMN: FULL,
        Feature.WIDEN_TYPE: unsupported("delta-rs can't set up Delta's type widening"),
        Feature.RENAME_COLUMN: unsupported(
            "that needs Delta's column mapping, and delta-rs can't change the columns of a table that has it"
        ),
        Feature.SET_PROPERTY: unsupported("what its tables are told when they are made stays so"),
        Feature.DROP_TABLE: FULL,
        Feature.TIME_TRAVEL: FULL,
        Feature.TIME_TRAVEL_BY_TIMESTAMP: FULL,
        Feature.HISTORY: FULL,
        Feature.INCREMENTAL_READ: FULL,
        Feature.CHANGE_FEED: FULL,
        Feature.FILTER_PUSHDOWN: FULL,
        Feature.LIMIT_PUSHDOWN: FULL,
        Feature.PLAIN_PARQUET: FULL,
        Feature.OBJECT_STORES: FULL,
        Feature.ROLLBACK_DETECTION: FULL,
        Feature.NESTED_TYPES: FULL,
        Feature.VECTORS: unsupported("Delta arrays have no fixed size"),
        Feature.INDEXING: unsupported("Delta has no secondary indexes that delta-rs can build"),
        Feature.SEARCH: unsupported("Delta ranks no rows: it has neither full-text nor vector indexes"),
        Feature.ADOPTION: unsupported("making tables of files that lie there is not built yet"),
        Feature.ORPHAN_COLLECTION: FULL,
        Feature.POWER_CUT: unsupported(
            "on a local disk delta-rs names a log entry before its bytes are on the device, so a power cut in between "
            "can leave a cut entry that nobody acknowledged, and that has to be removed"
        ),
    }
)
