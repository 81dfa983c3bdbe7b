"""The options of a Fluss cluster, and of one table in it."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.spi import Passthrough, option


@dataclass(frozen=True)
class FlussOptions:
    """How to reach the cluster."""

    bootstrap_servers: str = option("", "Some of the servers: host:port, separated by commas. Must be given.")
    databases: str = option("", "Whose tables these are, separated by commas; all databases unless given.")
    timeout_seconds: float = option(30.0, "How long the servers may stay silent before that is an error.")
    client: Passthrough = option(
        Passthrough(), "Handed to pyfluss: client.security.protocol, client.security.sasl.*, client.scanner.*, …"
    )


@dataclass(frozen=True)
class FlussTableOptions:
    """How a table is read."""

    split_offsets: int = option(1_000_000, "About how many offsets one task reads.", least=1)
    with_partitions: bool = option(
        True, "Partition the lake table as the Fluss table is. Set it to false for formats without partitions."
    )
    with_buckets: bool = option(
        True, "Give the lake table the Fluss table's buckets. Set it to false for formats without that bucket function."
    )
    include_bucket: bool = option(False, "Add the bucket of records, as int32.")
    include_offset: bool = option(False, "Add the offset of records, as int64.")
    include_timestamp: bool = option(
        False, "Add the time of records, as timestamp[ms, UTC]. Slow: the client then reads row by row."
    )
    truncated_changelog: bool = option(
        False, "Begin a primary-key table at the earliest change that is left, without the rows before it."
    )
    bucket_column: str = option("_bucket", "Its name.")
    offset_column: str = option("_offset", "Its name.")
    timestamp_column: str = option("_timestamp", "Its name.")
    change_column: str = option("_change_type", "The column of change types, of tables with a primary key.")
