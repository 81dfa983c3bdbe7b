"""CSV."""

from __future__ import annotations

from typing import ClassVar

from localfile_variants import Variant

from laketier.registry import hookimpl
from laketier.spi import Feature, Features, LakeStoragePlugin, unsupported
from laketier_localfile.options import FileFormatName


class CsvPlugin(Variant):
    identifier = "localfile-csv"
    features: ClassVar[Features] = {
        **Variant.features,
        Feature.NESTED_TYPES: unsupported("CSV has values without parts only"),
        Feature.VECTORS: unsupported("CSV has values without parts only"),
    }
    chosen = FileFormatName.CSV


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return CsvPlugin()
