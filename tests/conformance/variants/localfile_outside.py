"""Files without their partition columns, in each table that can have such."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from laketier.registry import hookimpl
from laketier.spi import (
    ConfigError,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    TableDescriptor,
    TableInfo,
    TablePath,
    UnsupportedType,
)
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.outside import OUTSIDE, check_outside
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.storage import LocalFileStorage


@dataclass(frozen=True)
class OutsideCatalog(LocalFileCatalog):
    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        outside = replace(descriptor, properties={**descriptor.properties, OUTSIDE: "false"})
        with suppress(ConfigError, UnsupportedType):
            check_outside(outside)
            descriptor = outside
        return super().create_table(path, descriptor)


class OutsideStorage(LocalFileStorage):
    def catalog(self) -> LocalFileCatalog:
        made = super().catalog()
        return OutsideCatalog(made.table_type, made.warehouse, made.manifests_per_rollup, made.options)


class OutsidePlugin(LocalFilePlugin):
    identifier: ClassVar[str] = "localfile-outside"

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        return OutsideStorage(config)


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return OutsidePlugin()
