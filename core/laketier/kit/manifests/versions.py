"""Which version a document of a table has: the least one whose readers understand it, told by what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laketier.kit.manifests.document import (
    ADOPTED_VERSION,
    EXPIRED_VERSION,
    FOLDED_VERSION,
    FORMAT_VERSION,
    FORMATTED_VERSION,
    GROWING_VERSION,
    KEYED_VERSION,
    TRANSFORMED_VERSION,
)
from laketier.kit.manifests.growth import GROWTH

OUTSIDE_PROPERTY = "partition.columns-in-files"
FORMAT_PROPERTY = "file.format"
FORMAT_DETAIL = "format"


def version_of(body: Mapping[str, Any]) -> int:
    """The version of a manifest or a rollup with this content."""
    entries = [entry for name in ("added", "open", "files") for entry in body.get(name, ())]
    metadata = body.get("metadata") or {"properties": {}}
    if "earliest" in body:
        return EXPIRED_VERSION
    if any(GROWTH in entry for entry in entries):
        return GROWING_VERSION
    if "partition_fields" in metadata or OUTSIDE_PROPERTY in metadata["properties"]:
        return TRANSFORMED_VERSION
    if any("transformed" in entry for entry in entries):
        return TRANSFORMED_VERSION
    if "origin" in body:
        return ADOPTED_VERSION
    if FORMAT_PROPERTY in metadata["properties"] or any(FORMAT_DETAIL in entry for entry in entries):
        return FORMATTED_VERSION
    if "folded" in body:
        return FOLDED_VERSION
    return KEYED_VERSION if "removed" in body or "primary_key" in metadata else FORMAT_VERSION
