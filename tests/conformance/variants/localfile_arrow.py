"""Arrow's own files."""

from __future__ import annotations

from localfile_variants import Variant

from laketier.registry import hookimpl
from laketier.spi import LakeStoragePlugin
from laketier_localfile.options import FileFormatName


class ArrowPlugin(Variant):
    identifier = "localfile-arrow"
    chosen = FileFormatName.ARROW


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return ArrowPlugin()
