"""What a format may declare: features, and how strong its delivery guarantee is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from laketier.spi.context import WriteMode
from laketier.spi.errors import FeatureNotSupported


class Feature(Enum):
    """Every optional thing a format can do. A plugin names those that it knows, FULL or UNSUPPORTED with a reason; one
    that it does not name counts as unsupported (`support_of`).

    What is unsupported must raise `FeatureNotSupported` for exactly that feature: the conformance suite
    tests the refusal as it tests the feature.
    """

    OVERWRITE = "overwrite"
    """Replace all rows in the same atomic step that publishes the new ones."""
    UPSERT = "upsert"
    """Tables with a primary key: files leave the table in the same step that publishes those that replace them."""
    PARTITIONING = "partitioning"
    """Identity partitions on columns."""
    PARTITION_TRANSFORMS = "partition-transforms"
    """Hidden partitioning: bucket, truncate, year, month, day, hour."""
    BUCKETING = "bucketing"
    """A fixed number of buckets by key (`TableDescriptor.buckets`)."""
    ADD_COLUMN = "add-column"
    """Add a nullable column at the end."""
    WIDEN_TYPE = "widen-type"
    """Give a column a type that holds all of its values (`WidenColumn`)."""
    RENAME_COLUMN = "rename-column"
    """Give a column another name (`RenameColumn`)."""
    DROP_TABLE = "drop-table"
    TIME_TRAVEL = "time-travel"
    """Read an older snapshot by its id."""
    TIME_TRAVEL_BY_TIMESTAMP = "time-travel-by-timestamp"
    """Read the snapshot that was current at a moment."""
    HISTORY = "history"
    """List the snapshots that can be read, through `LakeStorage.history`."""
    INCREMENTAL_READ = "incremental-read"
    """Read what commits appended, version by version, so that a table can be a log: through `LakeStorage.changes`."""
    CHANGE_FEED = "change-feed"
    """Read all that commits did to rows, deletes too, of tables that keep a feed of it: through `LakeStorage.feed`.
    Needs `INCREMENTAL_READ`, which tells the versions."""
    FILTER_PUSHDOWN = "filter-pushdown"
    """Skip files or rows by a predicate. Without it the source reports every predicate as remaining."""
    LIMIT_PUSHDOWN = "limit-pushdown"
    """Plan fewer splits for a limit."""
    PLAIN_PARQUET = "plain-parquet"
    """Splits can be plain Parquet files without deletes, readable by any Parquet reader."""
    OBJECT_STORES = "object-stores"
    """Warehouses beyond the local file system."""
    ROLLBACK_DETECTION = "rollback-detection"
    """A foreign restore or rollback is noticed and refused (`RolledBack` or `WatermarkLost`)."""
    NESTED_TYPES = "nested-types"
    """Struct, list and map columns. Without it, creating a table with one is refused, as this feature or as the type
    (`UnsupportedType`)."""
    VECTORS = "vectors"
    """FixedSizeList columns kept as such. Refused as NESTED_TYPES are."""
    INDEXING = "indexing"
    """Secondary indexes through `LakeStorage.indexer`."""
    ORPHAN_COLLECTION = "orphan-collection"
    """Listing and deleting files that nothing references, through `LakeStorage.maintenance`."""


class DeliveryLevel(Enum):
    """How strong the promise is that each acknowledged row is visible once. Declared by the plugin, and tested."""

    EXACTLY_ONCE = "exactly-once"
    """The watermark changes in the same atomic step as the data and is never forgotten."""
    IDEMPOTENT_UPSERT = "idempotent-upsert"
    """No atomic metadata: a replay overwrites the same keys with the same rows."""


@dataclass(frozen=True)
class Support:
    """Whether a feature is there. ``reason`` is empty exactly when it is."""

    reason: str = ""

    @property
    def full(self) -> bool:
        """True when the feature is supported."""
        return not self.reason


FULL = Support()


def unsupported(reason: str) -> Support:
    """Declare that a feature is missing. ``reason`` is a clause that users read after "because"."""
    if not reason.strip():
        raise ValueError("an unsupported feature needs a reason")
    return Support(reason)


Features = Mapping[Feature, Support] | Mapping[Feature | str, Support]
"""What a plugin names, by `Feature` or by its text. By text also what only a newer laketier knows: an older one, which
has no such `Feature`, ignores it, and `laketier formats` says so."""

UNNAMED = Support("the plugin does not name this feature, so it counts as unsupported")


def support_of(features: Features, feature: Feature) -> Support:
    """Whether a plugin with these ``features`` supports ``feature``. One that it does not name is unsupported: the
    plugin may have been written before the feature was."""
    named: Mapping[Any, Support] = features
    return named.get(feature, named.get(feature.value, UNNAMED))


def unknown_features(features: Features) -> tuple[str, ...]:
    """The texts among ``features`` that are no `Feature` of this laketier, sorted: the plugin is newer, or mistaken."""
    known = {feature.value for feature in Feature}
    return tuple(sorted(name for name in features if isinstance(name, str) and name not in known))


def require(format: str, features: Features, feature: Feature, *, fix: str | None = None) -> None:
    """Raise `FeatureNotSupported` unless ``feature`` is declared FULL. The one way plugins and core refuse."""
    support = support_of(features, feature)
    if not support.full:
        raise FeatureNotSupported(feature.value, format=format, reason=support.reason, fix=fix)


_NEEDED = {WriteMode.OVERWRITE: Feature.OVERWRITE, WriteMode.UPSERT: Feature.UPSERT}


def require_mode(format: str, features: Features, mode: WriteMode) -> None:
    """Raise `FeatureNotSupported` unless the format has the feature that ``mode`` needs. For the two methods of a
    `LakeTieringFactory`."""
    if mode in _NEEDED:
        require(format, features, _NEEDED[mode], fix="Use another write mode, or a format that has this one.")
