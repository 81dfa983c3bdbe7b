"""Vortex files."""

from __future__ import annotations

from localfile_variants import Variant

from laketier.registry import hookimpl
from laketier.spi import LakeStoragePlugin
from laketier_localfile.options import FileFormatName


class VortexPlugin(Variant):
    identifier = "localfile-vortex"
    chosen = FileFormatName.VORTEX


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return VortexPlugin()
