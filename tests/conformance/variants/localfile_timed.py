"""Folders by time: each table that is partitioned by time, and by no more after it, gets a pattern of its unit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from laketier.kit.time_spans import UNITS
from laketier.registry import hookimpl
from laketier.spi import LakeStorage, LakeStorageConfig, LakeStoragePlugin, TableDescriptor, TableInfo, TablePath
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.storage import LocalFileStorage
from laketier_localfile.time_pattern import TIME_PATTERN

PATTERNS = dict(zip(UNITS, ("year=%Y", "%Y-%m", "%Y/%m/%d", "%Y/%m/%d/%H", "%Y%m%d/%H%M"), strict=True))


@dataclass(frozen=True)
class TimedCatalog(LocalFileCatalog):
    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        pattern = PATTERNS.get(descriptor.partition_by[-1].transform) if descriptor.partition_by else None
        if pattern is not None:
            descriptor = replace(descriptor, properties={**descriptor.properties, TIME_PATTERN: pattern})
        return super().create_table(path, descriptor)


class TimedStorage(LocalFileStorage):
    def catalog(self) -> LocalFileCatalog:
        made = super().catalog()
        return TimedCatalog(made.table_type, made.warehouse, made.manifests_per_rollup, made.options)


class TimedPlugin(LocalFilePlugin):
    identifier: ClassVar[str] = "localfile-timed"

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        return TimedStorage(config)


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return TimedPlugin()
