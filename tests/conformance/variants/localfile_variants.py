"""The local file format with data files that are not Parquet. A feature belongs to a plugin, and these have no plain
Parquet files: so the suite takes each for a format of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from laketier.spi import Feature, Features, LakeStorage, LakeStorageConfig, unsupported
from laketier_localfile.features import FEATURES
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin


class Variant(LocalFilePlugin):
    """Writes the files of ``chosen``."""

    features: ClassVar[Features] = {**FEATURES, Feature.PLAIN_PARQUET: unsupported("its files have another format")}
    chosen: ClassVar[FileFormatName]

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        options = config.options if isinstance(config.options, LocalFileOptions) else LocalFileOptions()
        return super().create_storage(replace(config, options=replace(options, file_format=self.chosen)))
