"""The features of the format, and the reasons for missing ones."""

from __future__ import annotations

from collections.abc import Mapping

from laketier.spi import FULL, Feature, Support, unsupported

FEATURES: Mapping[Feature, Support] = {
    Feature.OVERWRITE: FULL,
    Feature.UPSERT: FULL,
    Feature.PARTITIONING: FULL,
    Feature.PARTITION_TRANSFORMS: FULL,
    Feature.BUCKETING: FULL,
    Feature.ADD_COLUMN: FULL,
    Feature.WIDEN_TYPE: FULL,
    Feature.RENAME_COLUMN: FULL,
    Feature.SET_PROPERTY: unsupported("what its tables are told when they are made stays so"),
    Feature.DROP_TABLE: FULL,
    Feature.TIME_TRAVEL: FULL,
    Feature.TIME_TRAVEL_BY_TIMESTAMP: FULL,
    Feature.HISTORY: FULL,
    Feature.INCREMENTAL_READ: FULL,
    Feature.CHANGE_FEED: unsupported("pyiceberg does not plan changelogs"),
    Feature.FILTER_PUSHDOWN: FULL,
    Feature.LIMIT_PUSHDOWN: FULL,
    Feature.PLAIN_PARQUET: FULL,
    Feature.OBJECT_STORES: FULL,
    Feature.ROLLBACK_DETECTION: FULL,
    Feature.NESTED_TYPES: FULL,
    Feature.VECTORS: unsupported("Iceberg's list forgets the length of its Arrow type; Lance keeps it"),
    Feature.INDEXING: unsupported("Iceberg has no secondary indexes"),
    Feature.SEARCH: unsupported("Iceberg ranks no rows: it has neither full-text nor vector indexes"),
    Feature.ADOPTION: unsupported("making tables of files that lie there is not built yet"),
    Feature.ORPHAN_COLLECTION: FULL,
    Feature.POWER_CUT: FULL,
}
