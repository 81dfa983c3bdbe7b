"""Metadata of tables in three tiers: memory, the disk of this host, and the table itself."""

from laketier.tables.metadata.asked import lake_of_table
from laketier.tables.metadata.cache import MetadataCache
from laketier.tables.metadata.counts import Counts, Statistics
from laketier.tables.metadata.folder import cache_folder
from laketier.tables.metadata.process import (
    changed,
    described,
    distrust,
    forget_process_cache,
    metadata_cache,
    opened,
    trusted,
)

__all__ = [
    "Counts",
    "MetadataCache",
    "Statistics",
    "cache_folder",
    "changed",
    "described",
    "distrust",
    "forget_process_cache",
    "lake_of_table",
    "metadata_cache",
    "opened",
    "trusted",
]
