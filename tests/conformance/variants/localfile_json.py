"""Lines of JSON."""

from __future__ import annotations

from localfile_variants import Variant

from laketier.registry import hookimpl
from laketier.spi import LakeStoragePlugin
from laketier_localfile.options import FileFormatName


class JsonPlugin(Variant):
    identifier = "localfile-json"
    chosen = FileFormatName.JSON


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return JsonPlugin()
