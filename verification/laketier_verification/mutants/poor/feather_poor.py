"""Feather as a format that declares nothing of what a format may leave out, but for the types that its files hold: the
suite asks whether each such thing is refused, and so reaches the refusals of the kit."""

from __future__ import annotations

from typing import ClassVar

from feather_lake.plugin import NAMES, FeatherPlugin, FeatherTable

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


class PoorPlugin(FeatherPlugin):
    """The format."""

    identifier, features, table_type = "feather-poor", FEATURES, PoorTable


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return PoorPlugin()
