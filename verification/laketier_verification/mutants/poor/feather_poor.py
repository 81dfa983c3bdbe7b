"""Feather as a format that declares nothing of what a format may leave out, but for the types that its files hold: the
suite asks whether each such thing is refused, and so reaches the refusals of the kit. It has no half floats, as most
libraries of files lack some type: its writer can't begin a file with such a column."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from feather_lake.plugin import NAMES, FeatherPlugin, FeatherTable, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

_TYPES = (spi.Feature.NESTED_TYPES, spi.Feature.VECTORS)
FEATURES = {
    feature: spi.FULL if feature in _TYPES else spi.unsupported("this one declares nothing") for feature in spi.Feature
}


class PoorTable(FeatherTable):
    """The same files, in folders of another name."""

    layout: ClassVar = kit.ManifestLayout("feather-poor", "_poor_manifests", NAMES.attempt_of)
    features: ClassVar = FEATURES

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        if any(map(pa.types.is_float16, schema.types)):
            raise spi.UnsupportedType("there are no half floats", fix="Use float32.")


class PoorWriter(Writer):
    """The same, with a type less."""

    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        if any(map(pa.types.is_float16, schema.types)):
            raise TypeError("no file can be made with half floats")
        return super().new_file(path, schema)


class PoorPlugin(FeatherPlugin):
    """The format."""

    identifier, features, table_type, writer_type = "feather-poor", FEATURES, PoorTable, PoorWriter


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return PoorPlugin()
