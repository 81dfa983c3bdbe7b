"""A lake table as a source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from laketier.config import LakeConfig
from laketier.registry import open_lake
from laketier.spi import LakeSource, Predicate, ScanRequest
from laketier.tables.metadata import described


def open_source(config: LakeConfig) -> LakeSource:
    """The source that reads the configured table. Driver. Raises `TableNotFound`, `PluginError`, `ConfigError`."""
    lake = open_lake(config)
    return lake.source(described(lake))


def scan_request(
    config: LakeConfig, columns: Sequence[str] | None = None, filters: Iterable[Predicate] = ()
) -> ScanRequest:
    """Make the request for the configured table: these columns and filters, at the snapshot that it names."""
    return ScanRequest(
        columns=None if columns is None else tuple(columns),
        filters=tuple(filters),
        snapshot_id=config.snapshot_id,
        as_of=config.as_of,
    )
