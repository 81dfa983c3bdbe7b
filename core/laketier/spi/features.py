"""The features and delivery levels that a format declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from laketier.spi.context import WriteMode
from laketier.spi.errors import FeatureNotSupported


class Feature(Enum):
    """The optional things that a format can do. A plugin declares each feature that it knows as FULL, or as UNSUPPORTED
    with a reason. A feature that it does not name counts as unsupported (`support_of`).

    A plugin raises `FeatureNotSupported` for exactly the features that it does not support. The conformance suite tests
    each refusal as it tests each feature.
    """

    OVERWRITE = "overwrite"
    """Replace all rows in the same atomic step that publishes the new ones."""
    UPSERT = "upsert"
    """Tables with a primary key: replaced files leave the table in the step that publishes the new ones."""
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
    SET_PROPERTY = "set-property"
    """Change a property of a table that is there (`SetProperty`)."""
    DROP_TABLE = "drop-table"
    TIME_TRAVEL = "time-travel"
    """Read an older snapshot by its id."""
    TIME_TRAVEL_BY_TIMESTAMP = "time-travel-by-timestamp"
    """Read the snapshot that was current at a moment."""
    HISTORY = "history"
    """List the snapshots that can be read, through `LakeStorage.history`."""
    INCREMENTAL_READ = "incremental-read"
    """Read the rows that commits appended, version by version, so that a table can be a log: `LakeStorage.changes`."""
    CHANGE_FEED = "change-feed"
    """Read all changes of rows, deletes too, of tables that keep a change feed: `LakeStorage.feed`. Needs
    `INCREMENTAL_READ`, which gives the versions."""
    FILTER_PUSHDOWN = "filter-pushdown"
    """Skip files or rows by a predicate. Without it the source reports every predicate as remaining."""
    LIMIT_PUSHDOWN = "limit-pushdown"
    """Plan fewer splits for a limit."""
    PLAIN_PARQUET = "plain-parquet"
    """Splits can be plain Parquet files without deletes, readable by any Parquet reader."""
    OBJECT_STORES = "object-stores"
    """Warehouses on object stores, beside the local file system."""
    ROLLBACK_DETECTION = "rollback-detection"
    """Notice a foreign restore or rollback, and refuse it (`RolledBack` or `WatermarkLost`)."""
    NESTED_TYPES = "nested-types"
    """Struct, list and map columns. A format without it refuses to create a table with one, by this feature or by the
    type (`UnsupportedType`)."""
    VECTORS = "vectors"
    """FixedSizeList columns, kept as such. A format without it refuses them as with NESTED_TYPES."""
    INDEXING = "indexing"
    """Secondary indexes through `LakeStorage.indexer`."""
    SEARCH = "search"
    """The best rows for words and vectors, through `LakeStorage.searcher`."""
    ADOPTION = "adoption"
    """Make tables of files that lie there, through `LakeStorage.adoption`."""
    ORPHAN_COLLECTION = "orphan-collection"
    """List and delete unreferenced files, through `LakeStorage.maintenance`."""
    POWER_CUT = "power-cut"
    """On a local disk, a power cut in the middle of a step leaves the table readable, with the whole step or without
    it. Without this feature a step that nobody acknowledged may have to be removed by hand. What was acknowledged
    survives a power cut in any format."""


class DeliveryLevel(Enum):
    """How strongly a format promises that each acknowledged row is visible once. The plugin declares it, and the suite
    tests it."""

    EXACTLY_ONCE = "exactly-once"
    """The watermark changes in the same atomic step as the data, and is never forgotten."""
    IDEMPOTENT_UPSERT = "idempotent-upsert"
    """The watermark follows the rows, in a step of its own. A reader may see rows of a round before its watermark, and
    a round that fails may leave some. A replay writes the same rows under the same keys again, so after it each row is
    there once. The key is the table's primary key or, for a table without one, a key of the format's own such as the
    number of the next version and of the row. The rows that another commit finds half done under such keys give way.
    `LakeCommitter.publish` still is a compare-and-set: a round whose state is stale raises `Conflict`."""


@dataclass(frozen=True)
class Support:
    """Whether a format supports a feature.

    Attributes:
        reason: Why it does not. Empty when it does.
    """

    reason: str = ""

    @property
    def full(self) -> bool:
        """Whether the feature is supported."""
        return not self.reason


FULL = Support()


def unsupported(reason: str) -> Support:
    """Declare that a feature is not supported.

    Args:
        reason: A clause that users read after "because".

    Returns:
        The declaration.

    Raises:
        ValueError: The reason is empty.
    """
    if not reason.strip():
        raise ValueError("an unsupported feature needs a reason")
    return Support(reason)


Features = Mapping[Feature, Support] | Mapping[Feature | str, Support]
"""The declaration of a plugin: support by `Feature`, or by a feature's text. Text can also name a feature that only a
newer laketier knows. An older laketier ignores it, and ``laketier formats`` shows it."""

UNNAMED = Support("the plugin does not name this feature, so it counts as unsupported")


def support_of(features: Features, feature: Feature) -> Support:
    """Look up the support of a feature. A feature that the plugin does not name is unsupported: the plugin may be older
    than the feature.

    Args:
        features: The declaration of the plugin.
        feature: The feature.

    Returns:
        The support.
    """
    named: Mapping[Any, Support] = features
    return named.get(feature, named.get(feature.value, UNNAMED))


def unknown_features(features: Features) -> tuple[str, ...]:
    """List the declared texts that are no `Feature` of this laketier. The plugin is newer, or mistaken.

    Args:
        features: The declaration of the plugin.

    Returns:
        The texts, sorted.
    """
    known = {feature.value for feature in Feature}
    return tuple(sorted(name for name in features if isinstance(name, str) and name not in known))


def require(format: str, features: Features, feature: Feature, *, fix: str | None = None) -> None:
    """Refuse unless a feature is supported. Plugins and core refuse in no other way.

    Args:
        format: The name of the format.
        features: The declaration of its plugin.
        feature: The feature.
        fix: The next step for the user.

    Raises:
        FeatureNotSupported: The feature is not declared FULL.
    """
    support = support_of(features, feature)
    if not support.full:
        raise FeatureNotSupported(feature.value, format=format, reason=support.reason, fix=fix)


_NEEDED = {WriteMode.OVERWRITE: Feature.OVERWRITE, WriteMode.UPSERT: Feature.UPSERT}


def require_mode(format: str, features: Features, mode: WriteMode) -> None:
    """Refuse unless the format has the feature that a write mode needs. For both methods of a `LakeTieringFactory`.

    Args:
        format: The name of the format.
        features: The declaration of its plugin.
        mode: The write mode.

    Raises:
        FeatureNotSupported: The feature is not declared FULL.
    """
    if mode in _NEEDED:
        require(format, features, _NEEDED[mode], fix="Use another write mode, or a format that has this one.")
