"""The features of the format, and the reasons for missing ones."""

from __future__ import annotations

from collections.abc import Mapping

from laketier.spi import FULL, Feature, Support, unsupported

FORMAT = "lance"

FEATURES: Mapping[Feature, Support] = {
    Feature.OVERWRITE: FULL,
    Feature.UPSERT: FULL,
    Feature.PARTITIONING: unsupported("Lance keeps rows in fragments and has no partitions that a reader would see"),
    Feature.PARTITION_TRANSFORMS: unsupported(
        "Lance keeps rows in fragments and has no partitions that a reader would see"
    ),
    Feature.BUCKETING: unsupported(
        "Lance has no buckets, and compaction merges fragments without regard to the rows' keys"
    ),
    Feature.ADD_COLUMN: FULL,
    Feature.WIDEN_TYPE: FULL,
    Feature.RENAME_COLUMN: FULL,
    Feature.SET_PROPERTY: FULL,
    Feature.DROP_TABLE: FULL,
    Feature.TIME_TRAVEL: FULL,
    Feature.TIME_TRAVEL_BY_TIMESTAMP: FULL,
    Feature.HISTORY: FULL,
    Feature.INCREMENTAL_READ: FULL,
    Feature.CHANGE_FEED: unsupported("telling the changed rows of a version is not built yet"),
    Feature.FILTER_PUSHDOWN: FULL,
    Feature.LIMIT_PUSHDOWN: FULL,
    Feature.PLAIN_PARQUET: unsupported("Lance's data files are not Parquet"),
    Feature.OBJECT_STORES: FULL,
    Feature.ROLLBACK_DETECTION: FULL,
    Feature.NESTED_TYPES: FULL,
    Feature.VECTORS: FULL,
    Feature.INDEXING: FULL,
    Feature.SEARCH: FULL,
    Feature.ADOPTION: unsupported("Lance's tables are of its own data files only"),
    Feature.ORPHAN_COLLECTION: FULL,
    Feature.POWER_CUT: unsupported(
        "on a local disk Lance names a manifest before its bytes are on the device, so a power cut in between can "
        "leave a cut manifest that nobody acknowledged, and that has to be removed"
    ),
}
